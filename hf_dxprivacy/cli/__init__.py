"""The command line, one module for each verb: parsing and printing only."""
