"""A Look as text: one file a format. Nothing here measures or judges."""
