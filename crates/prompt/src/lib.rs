//! Prompts that are what they claim to be: data sets in, request texts or token ids of known length out.
