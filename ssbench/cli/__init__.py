"""The command line: one file a program or sub-command."""
