"""A live auction in which one source falls silent, told as it happens."""
