"""A second, independent simulator of training on GPUs: traces as the PyTorch profiler writes them, with the truth."""
