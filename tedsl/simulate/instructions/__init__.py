"""What the arithmetic instructions of PTX compute, as functions of numpy arrays with an element for each thread."""
