"""How plain Python functions become machine code that the next process finds again."""
