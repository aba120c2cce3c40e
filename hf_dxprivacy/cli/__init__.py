"""The command line, a function for each verb: parsing and printing only."""
