"""A small language model, made from a configuration, trained by the Hugging Face Trainer. Labels are masked here and there, so
that samples weigh differently."""
import argparse
import logging
import tempfile

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

import notes


class Model(LlamaForCausalLM):
    def forward(self, input_ids=None, attention_mask=None, labels=None, **more):
        notes.passed(len(input_ids), torch.is_grad_enabled())
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels, **more)


def rows(count, words, length):
    """Texts that count: by one, by two, by three."""
    make = torch.Generator().manual_seed(7)
    for n in range(count):
        ids = (torch.randint(0, words, (1,), generator=make) + torch.arange(length) * (n % 3 + 1)) % words
        labels = ids.clone()
        labels[:n % (length - 8)] = -100
        yield {"input_ids": ids, "labels": labels}


class Notes(TrainerCallback):
    def on_train_begin(self, args, state, control, **_):
        notes.begin()

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs:
            notes.loss(logs["loss"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--words", type=int, default=8192)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=args.words, hidden_size=args.width, intermediate_size=2 * args.width, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=128)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(Model(config), train_dataset=list(rows(args.batch * args.steps, args.words, 64)), callbacks=[Notes()],
                          args=TrainingArguments(folder, num_train_epochs=1, per_device_train_batch_size=args.batch, report_to=[],
                                                 save_strategy="no", logging_steps=1, disable_tqdm=True, learning_rate=1e-3, seed=3))
        trainer.train()
    notes.end(step=trainer.state.global_step)


if __name__ == "__main__":
    main()
