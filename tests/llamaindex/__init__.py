"""Tests of the LlamaIndex adapter, and the contract kit they are built on (`contract`)."""
