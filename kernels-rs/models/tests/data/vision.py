"""Writes the expected values of a small Qwen3-VL by transformers, which the tests do not need.

    pip install torch torchvision transformers==5.17.0 safetensors 'Pillow<13' numpy
    python vision.py FOLDER
    python vision.py FOLDER 2b

Weights and images follow from formulas that the tests repeat, so that only results are stored. With
`2b`, the script needs a GPU. The script then writes a model with the extents of Qwen3-VL-2B and
random weights, and results of the model, for a test on a GPU.
"""

import json
import pathlib
import sys

import numpy
import torch
import transformers
from PIL import Image
from safetensors.numpy import load_file, save_file
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

SECTIONS = [12, 10, 10]
START, END, VISION_START, VISION_END, IMAGE, VIDEO = range(256, 262)


def configuration():
    text = dict(
        vocab_size=264, hidden_size=128, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, rms_norm_eps=1e-6, max_position_embeddings=512, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5000000.0, mrope_section=SECTIONS, mrope_interleaved=True),
    )
    vision = dict(
        depth=3, hidden_size=128, intermediate_size=192, num_heads=2, patch_size=16, spatial_merge_size=2,
        temporal_patch_size=2, out_hidden_size=128, num_position_embeddings=36, deepstack_visual_indexes=[0, 1],
    )
    return Qwen3VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=True, image_token_id=IMAGE, video_token_id=VIDEO,
        vision_start_token_id=VISION_START, vision_end_token_id=VISION_END,
    )


def numbers(name, shape):
    """Returns the weights of a tensor: 24 bits of SplitMix64, seeded by FNV-1a of the name."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) % (1 << 64)
    n = int(numpy.prod(shape))
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, n + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    unit = (z >> numpy.uint64(40)).astype(numpy.float32) / numpy.float32(1 << 23) - numpy.float32(1)
    if len(shape) == 1:
        is_norm = name.endswith("norm.weight") or "norm1.weight" in name or "norm2.weight" in name or "layernorm" in name
        values = numpy.float32(1) + unit * numpy.float32(0.5) if is_norm else unit * numpy.float32(0.25)
    elif "embed_tokens" in name:
        values = unit
    elif "pos_embed" in name:
        values = unit * numpy.float32(0.5)
    else:
        columns = n // shape[0]
        values = unit * numpy.float32(2.0 ** (1 - columns.bit_length() // 2))
    return values.reshape(shape)


def picture(height, width):
    """Returns an image with smooth slopes and sharp edges."""
    y, x, c = numpy.meshgrid(numpy.arange(height), numpy.arange(width), numpy.arange(3), indexing="ij")
    return ((x * 7 + y * 13 + c * 50 + (x * y) // 16) % 256).astype(numpy.uint8)


def processors():
    """Returns the two implementations of the image processor, with the settings of Qwen3-VL."""
    settings = dict(patch_size=16, temporal_patch_size=2, merge_size=2, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    return {"torch": lambda size: Qwen2VLImageProcessor(size=size, **settings),
            "pil": lambda size: Qwen2VLImageProcessorPil(size=size, **settings)}


def processed(processor, image):
    """Returns the patches of an image as bytes, without the repeated frame, and their grid."""
    found = processor(images=[Image.fromarray(image)], return_tensors="pt")
    patches = found["pixel_values"].numpy().reshape(-1, 3, 2, 256)
    assert (patches[:, :, 0] == patches[:, :, 1]).all()
    patches = patches[:, :, 0].reshape(-1, 768)
    levels = numpy.rint((patches.astype(numpy.float64) * 0.5 + 0.5) * 255)
    print("distance from levels", numpy.abs((levels / 255 - 0.5) / 0.5 - patches).max())
    return levels.clip(0, 255).astype(numpy.uint8), found["image_grid_thw"][0].tolist()


def preprocessing(to):
    about = []
    # Height, width, minimum and maximum of pixels.
    cases = [(64, 96, 1024, 1 << 20), (50, 75, 1024, 1 << 20), (150, 101, 1024, 16384), (33, 200, 20000, 1 << 20),
             (17, 40, 1024, 1 << 20)]
    for i, (height, width, least, most) in enumerate(cases):
        entry = {"height": height, "width": width, "least": least, "most": most}
        for name, processor in processors().items():
            found, grid = processed(processor({"shortest_edge": least, "longest_edge": most}), picture(height, width))
            to[f"patches.{i}.{name}"] = found
            entry["grid"] = grid[1:]
        difference = to[f"patches.{i}.torch"].astype(int) - to[f"patches.{i}.pil"].astype(int)
        entry["largest_difference"] = int(numpy.abs(difference).max())
        if entry["largest_difference"] == 0:
            del to[f"patches.{i}.torch"]
        about.append(entry)
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize
    sizes = []
    for height, width, least, most in [
        (1080, 1920, 65536, 16777216), (4000, 6000, 65536, 16777216), (1, 200, 65536, 16777216),
        (16, 48, 1024, 65536), (48, 80, 1024, 65536), (500, 333, 65536, 100000), (31, 31, 1024, 65536),
        (112, 144, 1024, 65536), (80, 16, 1024, 65536), (7, 1399, 3136, 65536),
    ]:
        sizes.append([height, width, least, most, *smart_resize(height, width, 32, least, most)])
    return about, sizes


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    config = configuration()
    config._attn_implementation = "eager"
    model = Qwen3VLForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(numbers(name, tuple(parameter.shape))))
    model.save_pretrained(folder / "small")
    names = sorted([name, list(value.shape)] for name, value in load_file(folder / "small/model.safetensors").items())

    to = {}
    resized, sizes = preprocessing(to)
    processor = processors()["pil"]({"shortest_edge": 1024, "longest_edge": 1 << 20})
    images = [Image.fromarray(picture(128, 192)), Image.fromarray(picture(64, 96))]
    found = processor(images=images, return_tensors="pt")
    pixels, grids = found["pixel_values"], found["image_grid_thw"]
    ids = [START, 10, 20, VISION_START] + [IMAGE] * 24 + [VISION_END, 30, 31, VISION_START] + [IMAGE] * 6
    ids += [VISION_END, 40, 41, 42, END]
    tokens = torch.tensor([ids])
    kinds = (tokens == IMAGE).int()
    with torch.no_grad():
        positions, delta = model.model.get_rope_index(tokens, kinds, grids)
        vision = model.model.visual(pixels, grid_thw=grids, return_dict=True)
        run = lambda model: model(input_ids=tokens, pixel_values=pixels.to(model.dtype), image_grid_thw=grids,
                                  mm_token_type_ids=kinds).logits[0].float()
        logits = run(model)
        text = model(input_ids=tokens[:, -4:], use_cache=False).logits[0]
        narrow = {}
        for kind in [torch.bfloat16, torch.float16]:
            difference = (run(model.to(kind)) - logits).abs().max() / logits.abs().max()
            narrow[str(kind)] = float(difference)
    to["logits"] = logits.numpy()
    to["text_logits"] = text.numpy()
    to["features"] = vision.pooler_output.numpy()
    for i, features in enumerate(vision.deepstack_features):
        to[f"deepstack.{i}"] = features.numpy()
    to = {name: numpy.ascontiguousarray(value) for name, value in to.items()}
    save_file(to, folder / "vision.safetensors")
    about = {
        "transformers": transformers.__version__, "torch": torch.__version__, "ids": ids,
        "grids": grids[:, 1:].tolist(), "positions": positions[:, 0].tolist(), "delta": int(delta[0, 0]),
        "narrow": narrow, "resized": resized, "sizes": sizes, "names": names,
    }
    text = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in about.items()) + "\n}\n"
    (folder / "vision.json").write_text(text)
    print(text)


def large(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    text = dict(
        vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, rms_norm_eps=1e-6, max_position_embeddings=262144,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5000000.0, mrope_section=[24, 20, 20],
                             mrope_interleaved=True),
    )
    vision = dict(
        depth=24, hidden_size=1024, intermediate_size=4096, num_heads=16, patch_size=16, spatial_merge_size=2,
        temporal_patch_size=2, out_hidden_size=2048, num_position_embeddings=2304,
        deepstack_visual_indexes=[5, 11, 17],
    )
    config = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True)
    config._attn_implementation = "eager"
    with torch.device("cuda"):
        model = Qwen3VLForConditionalGeneration(config).eval()
    processor = processors()["pil"]({"shortest_edge": 65536, "longest_edge": 1 << 24})
    images = [Image.fromarray(picture(480, 640)), Image.fromarray(picture(256, 300))]
    found = processor(images=images, return_tensors="pt").to("cuda")
    pixels, grids = found["pixel_values"], found["image_grid_thw"]
    ids = [1, 2, 3, config.vision_start_token_id]
    for grid, after in zip(grids.tolist(), [[70, 71, config.vision_start_token_id], [80, 81, 82, 83]]):
        ids += [config.image_token_id] * (grid[1] * grid[2] // 4) + [config.vision_end_token_id] + after
    tokens = torch.tensor([ids], device="cuda")
    kinds = (tokens == config.image_token_id).int()
    run = lambda model: model(input_ids=tokens, pixel_values=pixels.to(model.dtype), image_grid_thw=grids,
                              mm_token_type_ids=kinds, logits_to_keep=5).logits[0].float()
    to = {"ids": torch.tensor(ids, dtype=torch.int32)}
    with torch.no_grad():
        vision = model.model.visual(pixels, grid_thw=grids, return_dict=True)
        to["features"] = vision.pooler_output
        for i, features in enumerate(vision.deepstack_features):
            to[f"deepstack.{i}"] = features
        to["logits"] = run(model)
        model.save_pretrained(folder / "f32", max_shard_size="4GB")
        model = model.to(torch.bfloat16)
        to["bf16.logits"] = run(model)
        # The reference for bf16 activations has the weights in bf16, and activations in f32.
        model.save_pretrained(folder / "bf16", max_shard_size="4GB")
        to["bf16.features"] = model.model.visual(pixels.bfloat16(), grid_thw=grids, return_dict=True).pooler_output.float()
        model = model.to(torch.float32)
        to["rounded.logits"] = run(model)
        to["rounded.features"] = model.model.visual(pixels, grid_thw=grids, return_dict=True).pooler_output
    save_file({name: numpy.ascontiguousarray(value.cpu().numpy()) for name, value in to.items()}, folder / "2b.safetensors")


large(sys.argv[1]) if sys.argv[2:] == ["2b"] else main(sys.argv[1])
