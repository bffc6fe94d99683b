"""The vocabulary everything else is written in: types, blocks of tuples, punctuations."""
