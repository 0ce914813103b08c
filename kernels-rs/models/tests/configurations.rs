//! Configurations, tensors and memory of published models, and configurations that are rejected.

mod support;

use models::configuration::{
    Configuration, ModelArchitecture, Pairing, RotaryConfiguration, Scaling, VisionConfiguration, yarn_attention_factor,
};
use models::engine::linear::{FileRows, LinearLayer};
use models::file::gguf::Gguf;
use models::memory::{CacheFormat, MemoryPlan};
use models::tensors::{Naming, TensorRole};
use models::{Checkpoint, file::TensorFormat};
use runtime::Device;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use support::{GgufWriter, json as read_json, smollm2};

/// Returns the fields of Llama 3.1 8B's published `config.json` that the crate reads.
fn llama3() -> Value {
    json!({
        "model_type": "llama", "hidden_act": "silu", "attention_bias": false, "mlp_bias": false,
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0, "tie_word_embeddings": false,
        "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    })
}

/// Returns the fields of Qwen2.5 0.5B's `config.json`.
fn qwen2() -> Value {
    json!({
        "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864,
        "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true,
        "use_sliding_window": false, "sliding_window": 32768,
    })
}

/// Returns the fields of Qwen3 30B-A3B's `config.json`.
fn qwen3_moe() -> Value {
    json!({
        "model_type": "qwen3_moe", "hidden_act": "silu", "attention_bias": false, "hidden_size": 2048,
        "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_scaling": null, "tie_word_embeddings": false,
        "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true, "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    })
}

/// Returns the fields of Qwen3-VL 2B's `config.json`.
fn qwen3_vl() -> Value {
    json!({
        "model_type": "qwen3_vl", "tie_word_embeddings": true,
        "text_config": {
            "hidden_act": "silu", "attention_bias": false, "hidden_size": 2048, "intermediate_size": 6144,
            "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
            "vocab_size": 151936, "max_position_embeddings": 262144, "rms_norm_eps": 1e-6, "rope_theta": 5000000,
            "rope_scaling": {"mrope_interleaved": true, "mrope_section": [24, 20, 20], "rope_type": "default"},
        },
        "vision_config": {
            "deepstack_visual_indexes": [5, 11, 17], "depth": 24, "hidden_act": "gelu_pytorch_tanh",
            "hidden_size": 1024, "in_channels": 3, "intermediate_size": 4096, "num_heads": 16,
            "num_position_embeddings": 2304, "out_hidden_size": 2048, "patch_size": 16, "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
    })
}

fn read(json: &Value) -> Configuration {
    Configuration::from_json("config.json", json).unwrap()
}

/// Returns the number of parameters: the elements of all tensors.
fn parameters(configuration: &Configuration, naming: Naming) -> u64 {
    configuration.tensors(naming).iter().map(|tensor| tensor.extents.iter().product::<u64>()).sum()
}

/// Compares counts of parameters with published ones.
#[test]
fn published_models_have_their_parameters() {
    // The exact counts are those of the published safetensors files. The model cards round them:
    // 8.03 billion for Llama, 0.49 for Qwen2.5, 30.5 for Qwen3.
    for (json, count) in [
        (llama3(), 8_030_261_248u64),
        (qwen2(), 494_032_768),
        (qwen3_moe(), 30_532_122_624),
        (qwen3_vl(), 2_127_532_032),
    ] {
        let configuration = read(&json);
        assert_eq!(parameters(&configuration, Naming::Transformers), count, "{:?}", configuration.architecture);
        // GGUF joins the experts of a layer in one tensor, so only the number of tensors differs.
        assert_eq!(parameters(&configuration, Naming::Gguf), count, "{:?}", configuration.architecture);
        for naming in [Naming::Gguf, Naming::Transformers] {
            let tensors = configuration.tensors(naming);
            let names: HashSet<&String> = tensors.iter().map(|tensor| &tensor.name).collect();
            assert_eq!(names.len(), tensors.len());
            let places: HashSet<_> = tensors.iter().map(|tensor| (tensor.role, tensor.index, tensor.expert)).collect();
            assert_eq!(places.len(), tensors.len());
        }
    }
}

#[test]
fn tensors_have_the_names_of_both_formats() {
    let moe = read(&qwen3_moe());
    let named = |configuration: &Configuration, naming, name: &str| {
        let found = configuration.tensors(naming).into_iter().find(|tensor| tensor.name == name);
        found.map(|tensor| (tensor.role, tensor.index, tensor.expert, tensor.extents))
    };
    assert_eq!(
        named(&moe, Naming::Transformers, "model.layers.47.mlp.experts.127.down_proj.weight"),
        Some((TensorRole::ExpertDown, 47, 127, vec![2048, 768]))
    );
    assert_eq!(
        named(&moe, Naming::Gguf, "blk.47.ffn_down_exps.weight"),
        Some((TensorRole::ExpertDown, 47, 0, vec![128, 2048, 768]))
    );
    let vl = read(&qwen3_vl());
    for name in [
        "model.language_model.embed_tokens.weight",
        "model.language_model.layers.27.self_attn.q_norm.weight",
        "model.language_model.norm.weight",
        "model.visual.patch_embed.proj.weight",
        "model.visual.blocks.23.attn.qkv.bias",
        "model.visual.merger.norm.weight",
        "model.visual.deepstack_merger_list.2.linear_fc2.weight",
    ] {
        assert!(named(&vl, Naming::Transformers, name).is_some(), "{name}");
    }
    for name in [
        "v.patch_embd.weight.1",
        "v.blk.23.attn_qkv.bias",
        "v.post_ln.weight",
        "mm.2.bias",
        "v.deepstack.17.fc2.weight",
    ] {
        assert!(named(&vl, Naming::Gguf, name).is_some(), "{name}");
    }
    assert!(named(&vl, Naming::Transformers, "lm_head.weight").is_none(), "the output matrix is the embedding");
}

/// Compares frequencies with those that `make.py` computed by the formulas of Llama 3 and YaRN, up
/// to the rounding of `f32`.
#[test]
fn rotary_frequencies_match_the_formulas() {
    let expected: HashMap<String, Vec<f64>> = read_json("rotary.json");
    let rotary = |base, dimensions, scaling| RotaryConfiguration {
        base,
        dimensions,
        pairing: Pairing::Halves,
        scaling,
        axes: None,
    };
    let yarn = Scaling::Yarn {
        factor: 4.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        original: 32768.0,
        attention_factor: yarn_attention_factor(4.0, 1.0),
    };
    for (name, rotary) in
        [("none", rotary(1e5, 64, Scaling::None)), ("llama3", read(&llama3()).rotary), ("yarn", rotary(1e6, 128, yarn))]
    {
        let found = rotary.frequencies(&[]).unwrap();
        assert_eq!(found.len(), expected[name].len());
        for (i, (found, expected)) in found.iter().zip(&expected[name]).enumerate() {
            assert!((f64::from(*found) / expected - 1.0).abs() < 1e-6, "{name}, {i}: {found}, {expected}");
        }
    }
    assert_eq!(rotary(1e6, 128, yarn).attention_factor(), 1.138_629_4);
    // GGUF stores Llama 3's scaling as divisors, which give the same frequencies.
    let plain = rotary(5e5, 128, Scaling::None).frequencies(&[]).unwrap();
    let divisors: Vec<f32> = plain.iter().zip(&expected["llama3"]).map(|(plain, f)| plain / *f as f32).collect();
    let found = rotary(5e5, 128, Scaling::Divisors).frequencies(&divisors).unwrap();
    assert!(found.iter().zip(&expected["llama3"]).all(|(found, f)| (f64::from(*found) / f - 1.0).abs() < 1e-6));
    let error = rotary(5e5, 128, Scaling::Divisors).frequencies(&[]).unwrap_err().to_string();
    assert_eq!(error, "rotary positions, divisors: expected 64 divisors of frequencies, found 0");
}

/// Compares YaRN's factor of queries and keys with the steps of llama.cpp (`llama_context` in
/// `llama-context.cpp`, `rope_yarn` in ggml's `ops.cpp`), and with transformers'
/// `_compute_yarn_parameters`.
#[test]
fn yarn_factors_match_other_libraries() {
    let mscale = |scale: f64, mscale: f64| if scale <= 1.0 { 1.0 } else { 0.1 * mscale * scale.ln() + 1.0 };
    for factor in [0.5f32, 1.0, 4.0, 40.0] {
        for attn_factor in [None, Some(1.0f32), Some(0.75), Some(1.5)] {
            let file = small("qwen3")
                .text("qwen3.rope.scaling.type", "yarn")
                .f32("qwen3.rope.scaling.factor", factor)
                .u32("qwen3.rope.scaling.original_context_length", 64);
            let file = attn_factor.map_or(file.clone(), |x| file.f32("qwen3.rope.scaling.attn_factor", x));
            let found = Configuration::from_gguf(&gguf(file)).unwrap().rotary.attention_factor();
            // The context cancels the logarithm that the kernel multiplies again.
            let log = 1.0 + 0.1 * f64::from(factor).ln();
            let of_context = mscale(factor.into(), 1.0) / log * f64::from(attn_factor.unwrap_or(1.0));
            assert!((f64::from(found) / (of_context * log) - 1.0).abs() < 1e-6, "{factor}, {attn_factor:?}: {found}");
        }
        let found = |more: Value| {
            let mut json = qwen2();
            json["rope_scaling"] = json!({ "rope_type": "yarn", "factor": factor });
            more.as_object().unwrap().iter().for_each(|(key, value)| json["rope_scaling"][key] = value.clone());
            f64::from(read(&json).rotary.attention_factor())
        };
        let factor = f64::from(factor);
        for (more, expected) in [
            (json!({}), mscale(factor, 1.0)),
            (json!({ "attention_factor": 0.75 }), 0.75),
            (json!({ "attention_factor": 0.75, "mscale": 0.5, "mscale_all_dim": 1.0 }), 0.75),
            (json!({ "mscale": 0.5, "mscale_all_dim": 2.0 }), mscale(factor, 0.5) / mscale(factor, 2.0)),
            (json!({ "mscale": 0.5, "mscale_all_dim": 0.0 }), mscale(factor, 1.0)),
            (json!({ "mscale": 0.5 }), mscale(factor, 1.0)),
        ] {
            assert!((found(more.clone()) / expected - 1.0).abs() < 1e-6, "{factor}, {more}: {expected}");
        }
    }
    // llama.cpp multiplies with the number for every scaling, and the crate only for YaRN.
    let other = small("qwen3").f32("qwen3.rope.scaling.attn_factor", 1.5);
    let error = Configuration::from_gguf(&gguf(other)).unwrap_err().to_string();
    assert!(error.contains("`qwen3.rope.scaling.attn_factor`: 1.5 is not supported; supported: 1, or any"), "{error}");
}

/// Reads `rope_parameters`, as version 5 of transformers writes them.
#[test]
fn rope_parameters_of_newer_files() {
    let mut json = llama3();
    let mut parameters = json["rope_scaling"].take();
    parameters["rope_theta"] = 500_000.into();
    json["rope_parameters"] = parameters;
    json["rope_theta"].take();
    assert_eq!(read(&json), read(&llama3()));
}

#[test]
fn caches_have_a_scale_for_a_partial_block() {
    // A head of 80 elements has three scales, the last for 16 elements.
    let configuration = Configuration { head_size: 80, ..read(&llama3()) };
    assert_eq!(configuration.cache_per_token(CacheFormat::Q8_0), 32 * 2 * 8 * (80 + 3 * 2));
}

#[test]
fn smollm2_is_whole() {
    let Some(path) = smollm2() else { return };
    let checkpoint = Checkpoint::open(&path).unwrap();
    let configuration = checkpoint.configuration().unwrap();
    let Configuration { architecture, layers, width, heads, kv_heads, head_size, inner_size, has_tied_output, .. } =
        configuration;
    assert_eq!(architecture, ModelArchitecture::Llama);
    assert_eq!(
        (layers, width, heads, kv_heads, head_size, inner_size, has_tied_output),
        (30, 576, 9, 3, 64, 1536, true)
    );
    assert_eq!(configuration.rotary.pairing, Pairing::Neighbors);
    let weights = checkpoint.weights(&configuration).unwrap();
    assert_eq!((weights.len(), weights[0].1.format), (272, TensorFormat::Q8_0));
    // The file has 98,362,432 bytes, of which 1,785,664 are the header.
    assert_eq!(parameters(&configuration, Naming::Gguf), 134_515_008);
    assert_eq!(checkpoint.tensor_bytes(), 98_362_432 - 1_785_664);
    let memory = configuration.memory(MemoryPlan::default(), checkpoint.tensor_bytes());
    // 30 layers have keys and values of 3 heads of 64 elements, with 2 bytes each.
    assert_eq!(memory.cache_per_token, 30 * 2 * 3 * 64 * 2);
    assert_eq!(configuration.cache_per_token(CacheFormat::Q8_0), 30 * 2 * 3 * 2 * 34);
    assert_eq!(memory.cache, 4096 * memory.cache_per_token);
}

/// Rejects unsupported values and wrong types. The error names the field.
#[test]
fn unsupported_values_are_named() {
    let refused = |mut json: Value, path: &str, value: Value, expected: &str| {
        *json.pointer_mut(path).unwrap_or(&mut Value::Null) = value.clone();
        if json.pointer(path).is_none() {
            json[path.trim_start_matches('/')] = value;
        }
        let error = Configuration::from_json("config.json", &json).unwrap_err().to_string();
        assert_eq!(error, format!("config.json, {expected}"));
    };
    let lists = "supported: llama, qwen2, qwen3, qwen3_moe, qwen3_vl";
    refused(
        llama3(),
        "/model_type",
        "mamba".into(),
        &format!("`model_type`: the architecture `mamba` is not supported; {lists}"),
    );
    refused(llama3(), "/hidden_act", "gelu".into(), "`hidden_act`: \"gelu\" is not supported; supported: \"silu\"");
    refused(
        llama3(),
        "/rope_scaling/rope_type",
        "longrope".into(),
        "`rope_scaling.rope_type`: the scaling `longrope` is not supported; supported: default, linear, llama3, yarn",
    );
    refused(
        llama3(),
        "/quantization_config",
        json!({"quant_method": "gptq"}),
        "`quantization_config`: the quantization \"gptq\" is not supported; \
         supported: F32, F16, BF16, and the formats of GGUF",
    );
    refused(
        qwen2(),
        "/use_sliding_window",
        true.into(),
        "`use_sliding_window`: true is not supported; supported: false",
    );
    refused(llama3(), "/num_hidden_layers", 0.into(), "`num_hidden_layers`: expected 1 to 4096, found 0");
    refused(llama3(), "/hidden_size", (-1).into(), "`hidden_size`: expected an integer that is not negative, found -1");
    refused(llama3(), "/hidden_size", Value::Null, "`hidden_size`: the field is required, and it is absent");
    refused(
        llama3(),
        "/num_key_value_heads",
        5.into(),
        "`num_attention_heads`: expected a multiple of the 5 heads of keys, found 32",
    );
    refused(
        llama3(),
        "/hidden_size",
        3200.into(),
        "`head_dim`: a head of 100 elements is not supported; supported: 32, 64, 80, 96, 128, 256",
    );
    refused(
        qwen3_vl(),
        "/vision_config/out_hidden_size",
        4096.into(),
        "vision: a token of the tower has 4096 elements, one of the text 2048",
    );
    refused(
        qwen3_vl(),
        "/text_config/rope_scaling/mrope_section",
        json!([24, 20]),
        "`text_config.rope_scaling.mrope_section`: expected three sections whose sum is 64, found [24,20]",
    );
}

/// Returns the metadata of a small model of an architecture.
fn small(architecture: &str) -> GgufWriter {
    let key = |key: &str| format!("{architecture}.{key}");
    GgufWriter::default()
        .text("general.architecture", architecture)
        .u32(&key("block_count"), 1)
        .u32(&key("context_length"), 128)
        .u32(&key("embedding_length"), 128)
        .u32(&key("feed_forward_length"), 256)
        .u32(&key("attention.head_count"), 2)
        .u32(&key("attention.head_count_kv"), 1)
        .u32(&key("vocab_size"), 32)
        .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5)
}

fn gguf(writer: GgufWriter) -> Gguf {
    Gguf::from_bytes("x.gguf", writer.finish()).unwrap()
}

/// Adds every tensor that the configuration needs, as zeros in F16. `change` returns the extents
/// that a tensor gets, or `None` to leave it out.
fn with_tensors(writer: GgufWriter, change: impl Fn(&str, &[u64]) -> Option<Vec<u64>>) -> GgufWriter {
    let configuration = Configuration::from_gguf(&gguf(writer.clone())).unwrap();
    configuration.tensors(Naming::Gguf).into_iter().fold(writer, |writer, tensor| {
        match change(&tensor.name, &tensor.extents) {
            Some(extents) => {
                let bytes = 2 * extents.iter().product::<u64>() as usize;
                writer.tensor(&tensor.name, &extents, 1, vec![0; bytes])
            }
            None => writer,
        }
    })
}

#[test]
fn tensors_are_checked() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let check = |name: &str, writer: GgufWriter| {
        let path = folder.join(name);
        std::fs::write(&path, writer.finish()).unwrap();
        let checkpoint = Checkpoint::open(&path).unwrap();
        let configuration = checkpoint.configuration().unwrap();
        let result = checkpoint.weights(&configuration).map(|weights| weights.len());
        result.map_err(|error| error.to_string().replace(&format!("{}/", folder.display()), ""))
    };
    let same = |_: &str, extents: &[u64]| Some(extents.to_vec());
    for (architecture, count) in [("llama", 11), ("qwen2", 14), ("qwen3", 13)] {
        assert_eq!(check("whole.gguf", with_tensors(small(architecture), same)), Ok(count), "{architecture}");
    }
    let absent = |name: &str, extents: &[u64]| (name != "blk.0.attn_k.weight").then(|| extents.to_vec());
    assert_eq!(
        check("absent.gguf", with_tensors(small("llama"), absent)).unwrap_err(),
        "absent.gguf, tensor `blk.0.attn_k.weight`: llama needs the tensor, and it is absent"
    );
    let other = |name: &str, extents: &[u64]| {
        Some(if name == "blk.0.ffn_up.weight" { vec![128, 256] } else { extents.to_vec() })
    };
    assert_eq!(
        check("other.gguf", with_tensors(small("llama"), other)).unwrap_err(),
        "other.gguf, tensor `blk.0.ffn_up.weight`: expected extents [256, 128], found [128, 256]"
    );
    // Llama has no biases. If the reader ignored the tensor, the model would give wrong results.
    let more = with_tensors(small("llama"), same).tensor("blk.0.attn_q.bias", &[128], 0, vec![0; 512]);
    assert_eq!(
        check("more.gguf", more).unwrap_err(),
        "more.gguf, tensors: a model with the tensor `blk.0.attn_q.bias` is not supported; \
         supported: the tensors of llama"
    );
}

/// Replaces a matrix by one in each format. The tensors are accepted if layers can be made from the
/// format.
#[test]
fn formats_without_kernels_are_refused() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("formats.gguf");
    // Writes a model with one tensor of another format, and returns the message of an error.
    let check = |changed: &str, format: TensorFormat| {
        let configuration = Configuration::from_gguf(&gguf(small("llama"))).unwrap();
        let writer = configuration.tensors(Naming::Gguf).into_iter().fold(small("llama"), |writer, tensor| {
            let format = if tensor.name == changed { format } else { TensorFormat::F16 };
            let bytes = format.bytes(*tensor.extents.last().unwrap(), tensor.extents.iter().product()).unwrap();
            writer.tensor(&tensor.name, &tensor.extents, format.number(), vec![0; bytes as usize])
        });
        std::fs::write(&path, writer.finish()).unwrap();
        let checkpoint = Checkpoint::open(&path).unwrap();
        let bytes = checkpoint.weight_bytes(&checkpoint.configuration().unwrap());
        bytes.map(drop).map_err(|error| error.to_string().replace(path.to_str().unwrap(), "x.gguf"))
    };
    let kernels = "F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16, MXFP4";
    let device = Device::cpu();
    for format in TensorFormat::ALL {
        let bytes = vec![0; format.bytes(256, 128 * 256).unwrap() as usize];
        let rows = FileRows { format: *format, extents: [128, 256], bytes: &bytes };
        let expected = match LinearLayer::new(&device, &[rows], None) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!(
                "x.gguf, tensor `blk.0.ffn_down.weight`: the format {format} is not supported; supported: {kernels}"
            )),
        };
        assert_eq!(check("blk.0.ffn_down.weight", *format), expected);
        assert_eq!(kernels.split(", ").any(|name| name == format.name()), expected.is_ok(), "{format}");
    }
    assert_eq!(
        check("blk.0.attn_norm.weight", TensorFormat::Q8_0).unwrap_err(),
        "x.gguf, tensor `blk.0.attn_norm.weight`: the format Q8_0 is not supported; supported: F32, F16, BF16"
    );
}

#[test]
fn gguf_configurations_are_read() {
    let read = |writer: GgufWriter| Configuration::from_gguf(&gguf(writer)).map_err(|error| error.to_string());
    let configuration =
        read(small("qwen2").text("qwen2.rope.scaling.type", "linear").f32("qwen2.rope.scaling.factor", 2.0));
    let rotary = configuration.unwrap().rotary;
    assert_eq!((rotary.scaling, rotary.pairing), (Scaling::Linear { factor: 2.0 }, Pairing::Halves));
    let moe = small("qwen3moe").u32("qwen3moe.expert_count", 8).u32("qwen3moe.expert_used_count", 2);
    let moe = read(moe.u32("qwen3moe.expert_feed_forward_length", 64)).unwrap();
    assert_eq!((moe.inner_size, moe.experts.unwrap().count), (64, 8));
    let divisors = small("llama").tensor("rope_freqs.weight", &[32], 0, vec![0; 128]);
    assert_eq!(read(divisors).unwrap().rotary.scaling, Scaling::Divisors);
    for (writer, expected) in [
        (
            GgufWriter::default().text("general.architecture", "mamba"),
            "x.gguf, metadata `general.architecture`: the architecture `mamba` is not supported; \
             supported: llama, qwen2, qwen3, qwen3moe, qwen3vl",
        ),
        (
            small("llama").u32("llama.expert_count", 8),
            "x.gguf, metadata `llama.expert_count`: 8 experts in the architecture llama is not supported; \
             supported: experts in qwen3moe",
        ),
        (
            small("qwen2").u32("qwen2.attention.sliding_window", 64),
            "x.gguf, metadata `qwen2.attention.sliding_window`: 64 is not supported; \
             supported: attention to all tokens",
        ),
        (
            small("llama").f32("llama.final_logit_softcapping", 30.0),
            "x.gguf, metadata `llama.final_logit_softcapping`: 30 is not supported; supported: models without it",
        ),
        (
            small("qwen3vl"),
            "x.gguf, metadata `qwen3vl.rope.dimension_sections`: expected sections of a head for time, height and \
             width, and the file has no such entry",
        ),
        (
            small("llama").text("llama.rope.scaling.type", "longrope"),
            "x.gguf, metadata `llama.rope.scaling.type`: the scaling `longrope` is not supported; \
             supported: none, linear, yarn",
        ),
    ] {
        assert_eq!(read(writer).unwrap_err(), expected);
    }
    let sections = small("qwen3vl").i32s("qwen3vl.rope.dimension_sections", &[12, 10, 10, 0]);
    let vl = read(sections.u32("qwen3vl.n_deepstack_layers", 3)).unwrap();
    assert_eq!((vl.rotary.axes.unwrap().sections, vl.deepstack_layers), ([12, 10, 10], 3));
}

/// Reads the vision tower of an mmproj file.
#[test]
fn vision_towers_are_read() {
    let tower = || {
        GgufWriter::default()
            .text("general.architecture", "clip")
            .text("clip.projector_type", "qwen3vl_merger")
            .u32("clip.vision.block_count", 4)
            .u32("clip.vision.embedding_length", 64)
            .u32("clip.vision.feed_forward_length", 128)
            .u32("clip.vision.attention.head_count", 2)
            .u32("clip.vision.image_size", 64)
            .u32("clip.vision.patch_size", 16)
            .u32("clip.vision.projection_dim", 128)
            .bools("clip.vision.is_deepstack_layers", &[false, true, true, false])
    };
    let read = |writer: GgufWriter| VisionConfiguration::from_gguf(&gguf(writer));
    let vision = read(tower()).unwrap();
    assert_eq!((vision.deepstack, vision.positions, vision.merge, vision.frames), (vec![1, 2], 16, 2, 1));
    let two = ["v.patch_embd.weight", "v.patch_embd.weight.1"]
        .iter()
        .fold(tower(), |writer, name| writer.tensor(name, &[64, 3, 16, 16], 1, vec![0; 64 * 3 * 256 * 2]));
    let vision = read(two).unwrap();
    assert_eq!(vision.frames, 2);
    let patches =
        vision.tensors(Naming::Gguf).iter().filter(|tensor| tensor.name.starts_with("v.patch_embd.w")).count();
    assert_eq!(patches, 2);
    assert_eq!(
        read(GgufWriter::default()).unwrap_err().to_string(),
        "x.gguf, metadata `clip.projector_type`: absent: the file has no vision tower"
    );
    let other = GgufWriter::default().text("clip.projector_type", "ldp");
    assert_eq!(
        read(other).unwrap_err().to_string(),
        "x.gguf, metadata `clip.projector_type`: the projector `ldp` is not supported; supported: qwen3vl_merger"
    );
}
