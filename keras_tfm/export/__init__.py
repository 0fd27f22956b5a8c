"""Ship a trained model: a SavedModel that takes and returns strings."""
