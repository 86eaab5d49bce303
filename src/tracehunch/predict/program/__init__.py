"""A whole program, guessed from the calls it makes: what its GPU trace will show."""
