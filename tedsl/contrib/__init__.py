"""What is built on the language and is no part of it."""
