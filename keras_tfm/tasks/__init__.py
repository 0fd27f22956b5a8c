"""Data, model, loss and decoder in one object."""
