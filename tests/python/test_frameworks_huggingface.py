"""check_huggingface with real transformers and optimum, offline: configurations with random weights; only in full runs."""
import os
import sys
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers

import assay
import page_blocks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/frameworks"))
import huggingface_models  # noqa: E402

BERT = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, vocab_size=100)


class TestHuggingFace(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_models(self):
        for name, make, task in huggingface_models.MODELS:
            if "Whisper" in name and not os.environ.get("ASSAY_FULL"):
                continue  # half a minute: 1500 positions
            with self.subTest(name):
                result = assay.check_huggingface(make(), task=task)
                self.assertTrue(result.faithful, result.text)
                self.assertTrue(all(part.export.inner[0] for part in result.values()))

    def test_folder_tokenizer_and_drawn_parts(self):
        config = transformers.T5Config(d_model=32, num_layers=1, num_heads=4, d_kv=8, d_ff=64, vocab_size=100, decoder_start_token_id=0)
        with tempfile.TemporaryDirectory() as folder:
            transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
            result = assay.check_huggingface(folder, {"input_ids": [[5, 6, 7]], "attention_mask": [[1, 1, 1]]}, task="text2text-generation")
            self.assertTrue(result.faithful, result.text)
            self.assertEqual(result["encoder_model"].export.inputs[0]["input_ids"].tolist(), [[5, 6, 7]])
            self.assertEqual((list(result), result.drawn), (["encoder_model", "decoder_model"], ["decoder_model"]))
            self.assertEqual(list(assay.from_huggingface(folder, task="text2text-generation")), ["encoder_model", "decoder_model"])

        def tokenizer(text, **options):
            ids = torch.tensor([[ord(c) % 90 for c in text]])
            return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

        model = transformers.BertForSequenceClassification(transformers.BertConfig(**BERT))
        use_cache = model.config.use_cache
        result = assay.check_huggingface(model, "a text", tokenizer=tokenizer)
        self.assertTrue(result.faithful, result.text)
        self.assertEqual((result.task, model.config.use_cache, "forward" in model.__dict__), ("text-classification", use_cache, False))
        self.assertEqual(result["model"].export.inputs[0]["input_ids"].shape, (1, 6))

    def test_code_that_differs_in_an_export_is_blamed(self):
        class Wrong(transformers.BertForSequenceClassification):
            def forward(self, input_ids=None, attention_mask=None, token_type_ids=None):
                result = super().forward(input_ids, attention_mask, token_type_ids)
                return result if torch.jit.is_tracing() else type(result)(logits=result.logits * 1.25)

        Wrong.__name__ = "BertForSequenceClassification"
        result = assay.check_huggingface(Wrong(transformers.BertConfig(**BERT)), task="text-classification")
        self.assertFalse(result.export_faithful)
        self.assertTrue(result.engine_faithful)

    def test_errors(self):
        config = transformers.BertConfig(**BERT)
        rows = [((config,), {}, "pass task"), (("/no/such/folder",), {"task": "text-classification"}, "no model of"), ((3,), {}, "pass a transformers model"),
                ((config, "text"), {"task": "text-classification"}, "pass tokenizer"),
                ((config, {"pixel_values": [[1.0]]}), {"task": "text-classification"}, "it takes input_ids")]
        for arguments, options, text in rows:
            with self.assertRaises(assay.InvalidArgument) as error:
                assay.check_huggingface(*arguments, **options)
            self.assertIn(text, str(error.exception))
        with self.assertRaises(assay.AssayError):
            assay.check_huggingface(config, task="image-classification")

    def test_page(self):
        self.assertEqual(page_blocks.run_section("frameworks.md", "Hugging Face"), 1)


if __name__ == "__main__":
    unittest.main()
