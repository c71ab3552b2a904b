"""The verbs of the command line, one file each: words to calls; nothing is computed here."""
