"""Text data in files: readers and writers of the formats, and the job that privatizes one."""
