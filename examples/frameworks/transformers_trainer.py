"""Profile three updates of a Hugging Face Trainer: pip install '.[torch,transformers]'.

The model is a tiny Llama of random weights, so that this runs anywhere. It writes train.json.gz.
"""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from tracehunch import callbacks

sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
model = LlamaForCausalLM(LlamaConfig(**sizes, vocab_size=256, max_position_embeddings=32))
tokens = torch.randint(0, 256, (64, 32))
data = [{"input_ids": row, "labels": row} for row in tokens]

with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model,
        TrainingArguments(
            folder, max_steps=8, per_device_train_batch_size=2, report_to=[], save_strategy="no"
        ),
        train_dataset=data,
        callbacks=[callbacks.for_transformers("train.json.gz", guess={"sdpa.backend": "flash"})],
    )
    trainer.train()
