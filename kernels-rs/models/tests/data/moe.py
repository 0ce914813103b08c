"""Writes moe.json: logits of transformers' Qwen3-MoE for `small` of tests/support/small.rs.

The weights are random numbers of a linear congruence, rounded to Q8_0 in blocks of 32.

    pip install torch transformers==5.17.0 numpy
    python moe.py
"""
import json
import pathlib
import sys

import numpy
import torch
import transformers

WIDTH, HEADS, GROUPS, HEAD, INNER, TOKENS, LAYERS, EXPERTS, USED = 128, 4, 2, 64, 96, 40, 2, 8, 3
F32 = numpy.float32
seed = 7


def random(n, size):
    """Returns n numbers as the function `random` of small.rs does."""
    global seed
    numbers = numpy.empty(n, F32)
    for i in range(n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        numbers[i] = (F32(seed >> 40) / F32(1 << 24) - F32(0.5)) * F32(2) * F32(size)
    return numbers


def rounded(numbers):
    """Rounds numbers to those that Q8_0 can store."""
    blocks = numbers.reshape(-1, 32)
    scale = (numpy.abs(blocks).max(1, keepdims=True) / F32(127)).astype(F32)
    quotient = blocks / scale
    # Ties are rounded away from zero.
    q = numpy.sign(quotient) * numpy.floor(numpy.abs(quotient) + F32(0.5))
    return (scale.astype(numpy.float16).astype(F32) * q.astype(F32)).reshape(-1)


def matrix(rows, columns, count=1):
    numbers = rounded(random(count * rows * columns, F32(1.5) / numpy.sqrt(F32(columns))))
    shape = (rows, columns) if count == 1 else (count, rows, columns)
    return torch.from_numpy(numbers.reshape(shape))


weights = {"model.embed_tokens.weight": matrix(TOKENS, WIDTH)}
for i in range(LAYERS):
    for name, rows, columns in [("q", HEADS * HEAD, WIDTH), ("k", GROUPS * HEAD, WIDTH), ("v", GROUPS * HEAD, WIDTH),
                                ("o", WIDTH, HEADS * HEAD)]:
        weights[f"model.layers.{i}.self_attn.{name}_proj.weight"] = matrix(rows, columns)
for i in range(LAYERS):
    router = random(EXPERTS * WIDTH, 0.3).reshape(EXPERTS, WIDTH)
    weights[f"model.layers.{i}.mlp.gate.weight"] = torch.from_numpy(router)
    gate, up, down = matrix(INNER, WIDTH, EXPERTS), matrix(INNER, WIDTH, EXPERTS), matrix(WIDTH, INNER, EXPERTS)
    # transformers 5 has the experts of a layer in two tensors.
    weights[f"model.layers.{i}.mlp.experts.gate_up_proj"] = torch.cat([gate, up], 1)
    weights[f"model.layers.{i}.mlp.experts.down_proj"] = down


def vector(n):
    return torch.from_numpy(random(n, 0.5) + F32(1))


for i in range(LAYERS):
    weights[f"model.layers.{i}.input_layernorm.weight"] = vector(WIDTH)
    weights[f"model.layers.{i}.post_attention_layernorm.weight"] = vector(WIDTH)
    weights[f"model.layers.{i}.self_attn.q_norm.weight"] = vector(HEAD)
    weights[f"model.layers.{i}.self_attn.k_norm.weight"] = vector(HEAD)
weights["model.norm.weight"] = vector(WIDTH)
weights["lm_head.weight"] = weights["model.embed_tokens.weight"]

configuration = transformers.Qwen3MoeConfig(
    vocab_size=TOKENS, hidden_size=WIDTH, moe_intermediate_size=INNER, intermediate_size=INNER, num_hidden_layers=LAYERS,
    num_attention_heads=HEADS, num_key_value_heads=GROUPS, head_dim=HEAD, num_experts=EXPERTS, num_experts_per_tok=USED,
    norm_topk_prob=True, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True, decoder_sparse_step=1,
    mlp_only_layers=[], max_position_embeddings=128, bos_token_id=None, eos_token_id=None, pad_token_id=None,
)
model = transformers.Qwen3MoeForCausalLM(configuration).float().eval()
missing, unexpected = model.load_state_dict(weights, strict=False)
assert not missing and not unexpected, (missing, unexpected)
tokens = [i * 7 % 40 for i in range(40)]
with torch.no_grad():
    logits = model(torch.tensor([tokens])).logits[0]
rows = {at: [float(f"{x:.7g}") for x in logits[at].tolist()] for at in [0, 1, 5, 39]}
value = {"transformers": transformers.__version__, "tokens": tokens, "logits": {str(at): row for at, row in rows.items()}}
folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in value.items()) + "\n}\n"
(folder / "moe.json").write_text(text)
