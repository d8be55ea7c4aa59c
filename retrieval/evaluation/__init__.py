"""How good the answers of a knowledge base are, by what people said should be found."""
