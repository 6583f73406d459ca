//! Tokenizers: Hugging Face `tokenizer.json` files, found locally or in the hub cache.
