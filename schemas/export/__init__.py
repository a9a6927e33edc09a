"""What is generated from the models: JSON Schema and custom resources."""
