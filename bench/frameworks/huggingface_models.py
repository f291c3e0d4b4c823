"""Hugging Face configurations of small models with random weights: rows of (name, configuration, task)."""
import transformers as t

MODELS = [
    ("BERT, text classification", lambda: t.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                                       vocab_size=100, architectures=["BertForSequenceClassification"]), None),
    ("GPT-2, text generation", lambda: t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64), "text-generation"),
    ("GPT-2, with keys and values", lambda: t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64),
     "text-generation-with-past"),
    ("Llama, with keys and values", lambda: t.LlamaConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                                          intermediate_size=64, vocab_size=100), "text-generation-with-past"),
    ("ViT, image classification", lambda: t.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                                      image_size=32, patch_size=8), "image-classification"),
    ("Whisper, speech recognition", lambda: t.WhisperConfig(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                                            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=100,
                                                            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
                                                            max_source_positions=1500),
     "automatic-speech-recognition"),
    ("T5, text to text", lambda: t.T5Config(d_model=32, num_layers=2, num_heads=4, d_kv=8, d_ff=64, vocab_size=100, decoder_start_token_id=0),
     "text2text-generation-with-past"),
]
