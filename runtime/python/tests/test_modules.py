"""Modules of PyTorch, and Hugging Face's Qwen3-VL with the kernels beside its own modules."""

import copy

import pytest

import kernels_rs

torch = pytest.importorskip("torch")

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
RUN = {"strict": True, "interpret": True}


def gradients(module, y):
    names, parameters = zip(*((n, p) for n, p in module.named_parameters() if p.requires_grad))
    found = torch.autograd.grad(y.square().mean(), parameters, allow_unused=True)
    return {name: x if x is None else x.cpu() for name, x in zip(names, found)}


def equal(ours, theirs, tolerance=1e-4):
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        if expected is None:
            assert ours[name] is None, name
            continue
        scale = expected.abs().max().item() + 1e-12
        assert (ours[name] - expected).abs().max().item() <= tolerance * scale, name


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    "options",
    [{}, {"key_heads": 2, "norm_eps": 1e-6, "bias": True}, {"causal": False, "rope_base": None}, {"window": (2, 0)}],
)
def test_a_block_by_kernels_is_that_of_pytorch(options, on):
    torch.manual_seed(1)
    block = kernels_rs.TransformerBlock(32, 4, 48, **options, **RUN).to(on)
    plain = kernels_rs.TransformerBlock(32, 4, 48, **options)
    plain.load_state_dict(block.state_dict())
    x, positions = torch.randn(2, 7, 32), torch.tensor([0, 1, 2, 3, 4, 9, 40])
    found, expected = block(x.to(on), positions.to(on)).cpu(), plain(x, positions)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    equal(gradients(block, found), gradients(plain, expected))
    # The other block uses PyTorch's operators only, because its tensors are on the CPU.
    kernels_rs.stats(reset=True)
    plain(x)
    counts = kernels_rs.stats(reset=True)
    assert counts and all(not of["kernel"] and set(of["torch"]) == {"tensors of the CPU"} for of in counts.values())


def test_a_block_is_its_definition():
    torch.manual_seed(2)
    block = kernels_rs.TransformerBlock(16, 2, 24, rope_base=None).double()
    x = torch.randn(1, 5, 16, dtype=torch.float64)

    def rms(x):
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()

    a = block.self_attn
    q, k, v = (p(rms(x)).reshape(1, 5, 2, 8).transpose(1, 2) for p in (a.q_proj, a.k_proj, a.v_proj))
    logits = (q @ k.mT / 8**0.5).masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf"))
    y = x + a.o_proj((logits.softmax(-1) @ v).transpose(1, 2).reshape(1, 5, 16))
    m = block.mlp
    gate = m.gate_proj(rms(y))
    expected = y + m.down_proj(gate * gate.sigmoid() * m.up_proj(rms(y)))
    torch.testing.assert_close(block(x), expected)


def test_an_mlp_may_have_no_gate():
    mlp = kernels_rs.OptimizedMLP(8, 20, "gelu", gated=False, bias=True, **RUN)
    x = torch.randn(3, 8)
    torch.testing.assert_close(mlp(x), mlp.down_proj(torch.nn.functional.gelu(mlp.up_proj(x))))
    with pytest.raises(ValueError, match="expected one of silu"):
        kernels_rs.OptimizedMLP(8, 20, "relu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_states_of_pytorch_are_continued(dtype):
    p = torch.nn.Parameter(torch.linspace(-1, 1, 8).to(dtype))
    theirs = torch.optim.AdamW([p])
    p.grad = torch.ones_like(p)
    theirs.step()
    q = torch.nn.Parameter(p.detach().clone())
    ours = kernels_rs.AdamW([q], **RUN)
    ours.load_state_dict(theirs.state_dict())
    q.grad = torch.ones_like(q)
    for optimizer in (ours, theirs):
        optimizer.step()
    state = ours.state[q]
    assert state["step"] == 2 and state["exp_avg"].dtype == torch.float32
    torch.testing.assert_close(q.float(), p.float(), rtol=1e-2 if dtype == torch.bfloat16 else 1e-6, atol=1e-6)


def test_attention_accepts_an_empty_batch():
    attention = kernels_rs.OptimizedAttention(16, 2)
    assert attention(torch.zeros(0, 3, 16)).shape == (0, 3, 16)


def test_complex_parameters_are_rejected():
    with pytest.raises(TypeError, match="AdamW takes real parameters, and one is complex64"):
        kernels_rs.AdamW([torch.nn.Parameter(torch.ones(1, dtype=torch.complex64))])


@pytest.mark.parametrize("on", DEVICES)
def test_training_steps_are_those_of_pytorch(on):
    torch.manual_seed(3)
    ours = kernels_rs.TransformerBlock(16, 2, 24, **RUN).to(on)
    theirs = kernels_rs.TransformerBlock(16, 2, 24).double()
    theirs.load_state_dict(ours.state_dict())
    x, labels = torch.randn(2, 6, 16), torch.randint(0, 16, (12,))
    losses = []
    for model, loss_of in ((ours, kernels_rs.cross_entropy), (theirs, torch.nn.functional.cross_entropy)):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        weight = next(model.parameters())
        of_model = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = loss_of(model(x.to(weight)).reshape(12, 16), labels.to(weight.device))
            loss.backward()
            optimizer.step()
            of_model.append(loss.item())
        losses.append(of_model)
    assert losses[1][2] < losses[1][0]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.fixture(scope="module")
def qwen():
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, "Qwen3VLForConditionalGeneration"):
        pytest.skip("this version of transformers has no Qwen3-VL")
    torch.manual_seed(4)
    text = dict(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]},
    )
    vision = dict(
        depth=2,
        hidden_size=16,
        intermediate_size=24,
        num_heads=2,
        patch_size=4,
        out_hidden_size=32,
        num_position_embeddings=16,
        deepstack_visual_indexes=[0],
    )
    ids = dict(image_token_id=60, video_token_id=61, vision_start_token_id=62, vision_end_token_id=63)
    config = transformers.Qwen3VLConfig(text_config=text, vision_config=vision, **ids)
    return transformers.Qwen3VLForConditionalGeneration(config).float().eval()


def pictures(on="cpu"):
    torch.manual_seed(5)
    # A picture of 4 × 4 patches is 2 × 2 tokens.
    tokens = torch.tensor([[1, 62, 60, 60, 60, 60, 63, 5, 9, 11]])
    types = (tokens == 60).int()
    pixels, grid = torch.randn(16, 3 * 2 * 4 * 4), torch.tensor([[1, 4, 4]])
    given = dict(input_ids=tokens, mm_token_type_ids=types, pixel_values=pixels, image_grid_thw=grid)
    return {name: x.to(on) for name, x in given.items()}


@pytest.mark.parametrize("on", DEVICES)
def test_qwen3_vl_gives_the_logits_of_pytorch(qwen, on):
    theirs, ours = copy.deepcopy(qwen).to(on), copy.deepcopy(qwen).to(on)
    patched = kernels_rs.patch(ours, **RUN)
    kernels = list(patched.modules.values())
    counted = {kernel: kernels.count(kernel) for kernel in sorted(set(kernels))}
    # Two layers of text with four norms each and one at the end; two of vision with two norms, and
    # two mergers with a norm.
    assert counted == {"attention, rotary": 4, "gelu": 2, "layer_norm": 6, "rms_norm": 9, "swiglu": 2}, str(patched)
    assert not patched.left
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    kernels_rs.stats(reset=True)
    found, expected = ours(**pictures(on)).logits, theirs(**pictures(on)).logits
    counts = kernels_rs.stats(reset=True)
    assert {n: of["kernel"] for n, of in counts.items()} == {
        "attention": 4, "gelu_tanh": 2, "norm": 15, "rotary_tables": 8, "swiglu_of_two": 2
    }
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    equal(gradients(ours, found), gradients(theirs, expected), 1e-3)
    # A copy of a patched model has the patched methods too.
    assert copy.deepcopy(ours)(**pictures(on)).logits.equal(found)
    patched.undo()
    kernels_rs.stats(reset=True)
    assert ours(**pictures(on)).logits.equal(expected) and not kernels_rs.stats()


def test_qwen3_vl_generates_with_a_cache_and_padding(qwen):
    theirs, ours = copy.deepcopy(qwen), copy.deepcopy(qwen)
    kernels_rs.patch(ours, interpret=True)
    tokens = torch.tensor([[0, 0, 3, 4, 5], [6, 7, 8, 9, 10]])
    options = dict(max_new_tokens=4, do_sample=False, attention_mask=(tokens > 0).int(), pad_token_id=0)
    kernels_rs.stats(reset=True)
    found = ours.generate(input_ids=tokens, **options)
    assert torch.equal(found, theirs.generate(input_ids=tokens, **options))
    # Padded prompts have a mask, for which there is no kernel here.
    assert "a mask" in kernels_rs.stats(reset=True)["attention"]["torch"]


@pytest.mark.parametrize("on", DEVICES)
def test_patch_replaces_linear_layers(on):
    torch.manual_seed(7)
    theirs = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.GELU(), torch.nn.Linear(12, 5, bias=False)).to(on)
    ours = copy.deepcopy(theirs)
    with pytest.raises(ValueError, match="Sequential has no attention"):
        kernels_rs.patch(ours, **RUN)
    patched = kernels_rs.patch(ours, linear=True, **RUN)
    assert patched.modules == {"0": "linear", "2": "linear"}
    x = torch.randn(2, 3, 8, device=on)
    kernels_rs.stats(reset=True)
    found, expected = ours(x), theirs(x)
    assert kernels_rs.stats(reset=True) == {"product": {"kernel": 2, "torch": {}}}
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    equal(gradients(ours, found), gradients(theirs, expected))
    patched.undo()
    assert ours(x).equal(expected)


def test_patch_on_the_cpu_is_pytorch(qwen):
    ours = copy.deepcopy(qwen)
    kernels_rs.patch(ours)
    kernels_rs.stats(reset=True)
    ours(**pictures())
    assert all(of["kernel"] == 0 for of in kernels_rs.stats(reset=True).values())
    kernels_rs.patch(ours, strict=True)
    with pytest.raises(kernels_rs.Unsupported, match="tensors of the CPU"):
        ours(**pictures())


def test_patch_rejects_another_model():
    with pytest.raises(ValueError, match="Linear has no attention"):
        kernels_rs.patch(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("dtype,tolerance", [(torch.float32, 1e-6), (torch.bfloat16, 2**-7), (torch.float64, 1e-12)])
def test_adamw_takes_the_steps_of_pytorch(dtype, tolerance, on):
    settings = dict(lr=0.03, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)
    torch.manual_seed(6)
    start = [torch.randn(37, 5).to(on, dtype), torch.randn(8).to(on, dtype)]
    gradients = [[torch.randn(37, 5).to(on, dtype), torch.randn(8).to(on, dtype)] for _ in range(4)]
    ours = [torch.nn.Parameter(x.clone()) for x in start]
    theirs = [torch.nn.Parameter(x.clone().double()) for x in start]
    pairs = (ours, kernels_rs.AdamW(ours, interpret=True, **settings)), (theirs, torch.optim.AdamW(theirs, **settings))
    kernels_rs.stats(reset=True)
    for weights, optimizer in pairs:
        for of_step in gradients:
            for w, g in zip(weights, of_step):
                w.grad = g.to(w.dtype)
            versions = [w._version for w in weights]
            optimizer.step()
            assert all(w._version > before for w, before in zip(weights, versions))
    counts = kernels_rs.stats(reset=True)["adamw"]
    assert counts["kernel"] == (0 if dtype == torch.float64 else 8), counts
    for found, expected in zip(ours, theirs):
        # The weights of 16 bits are rounded at each step.
        assert (found.double() - expected).abs().max() <= 4 * tolerance
    state = pairs[0][1].state_dict()
    again = kernels_rs.AdamW(ours, interpret=True, **settings)
    again.load_state_dict(state)
    assert again.state[ours[0]]["step"] == 4
    for name in ("exp_avg", "exp_avg_sq"):
        loaded, saved = again.state[ours[0]][name], pairs[0][1].state[ours[0]][name]
        assert loaded.dtype == saved.dtype and loaded.equal(saved) and loaded is not saved


def test_adamw_rejects_settings():
    with pytest.raises(ValueError, match="betas"):
        kernels_rs.AdamW([torch.nn.Parameter(torch.zeros(2))], betas=(0.9, 1.0))
