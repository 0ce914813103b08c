//! The tensors that a configuration needs: their names in either kind of file, and their extents.

use crate::configuration::{Configuration, Experts, ModelArchitecture, VisionConfiguration};

/// A naming convention of tensors, which depends on the kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Naming {
    /// GGUF's names, such as `blk.0.attn_q.weight`. The experts of a layer share a tensor for each
    /// of their three matrices.
    Gguf,
    /// Names of Hugging Face's transformers, such as `model.layers.0.self_attn.q_proj.weight`. Each
    /// expert has separate tensors.
    Transformers,
}

/// The use of a tensor. [`TensorRequirement`] has the extents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum TensorRole {
    Embedding,
    /// The norm after the last layer.
    OutputNorm,
    /// The matrix that computes logits.
    Output,
    /// Divisors of the rotary frequencies, one for each rotated pair.
    RotaryDivisors,
    AttentionNorm,
    Query,
    QueryBias,
    QueryNorm,
    Key,
    KeyBias,
    KeyNorm,
    Value,
    ValueBias,
    AttentionOutput,
    /// The norm before the feed-forward network down(silu(gate(x))·up(x)), or before the experts.
    NetworkNorm,
    Gate,
    Up,
    Down,
    /// The matrix whose product ranks the experts for a token.
    Router,
    ExpertGate,
    ExpertUp,
    ExpertDown,
    Vision(VisionRole),
}

/// The use of a tensor of a vision tower. Each tensor is a weight or a bias.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum VisionRole {
    /// The convolution that embeds a patch. GGUF has a tensor for each frame.
    Patch,
    PatchBias,
    /// The learned positions.
    Positions,
    AttentionNorm,
    AttentionNormBias,
    /// The matrices of queries, keys and values, one below the other.
    Projection,
    ProjectionBias,
    AttentionOutput,
    AttentionOutputBias,
    NetworkNorm,
    NetworkNormBias,
    Up,
    UpBias,
    Down,
    DownBias,
    /// The norm of the merger after the last layer, which makes the embeddings of tokens.
    MergerNorm,
    MergerNormBias,
    MergerUp,
    MergerUpBias,
    MergerDown,
    MergerDownBias,
    /// The norm of a merger after an earlier layer, which makes features.
    DeepstackNorm,
    DeepstackNormBias,
    DeepstackUp,
    DeepstackUpBias,
    DeepstackDown,
    DeepstackDownBias,
}

impl VisionRole {
    /// Tells whether the tensor is a matrix of a merger, after the last or an earlier layer.
    pub fn is_merger(self) -> bool {
        use VisionRole::*;
        matches!(self, MergerUp | MergerDown | DeepstackUp | DeepstackDown)
    }
}

/// A tensor that a configuration needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorRequirement {
    /// The use.
    pub role: TensorRole,
    /// The layer, the frame of a patch, or the index of a merger; 0 for a tensor that exists once.
    pub index: usize,
    /// The index of the expert, if each expert has separate tensors; otherwise 0.
    pub expert: usize,
    /// The name in the file.
    pub name: String,
    /// Extents, outermost first.
    pub extents: Vec<u64>,
}

/// A list of requirements under construction.
struct TensorCollector {
    naming: Naming,
    /// The prefix of names in files of transformers, such as `model.`.
    prefix: &'static str,
    requirements: Vec<TensorRequirement>,
}

impl TensorCollector {
    /// Adds a tensor. `gguf` and `transformers` are its names in the two conventions.
    fn add(&mut self, role: TensorRole, index: usize, gguf: String, transformers: String, extents: &[usize]) {
        let name = match self.naming {
            Naming::Gguf => gguf,
            Naming::Transformers => format!("{}{transformers}", self.prefix),
        };
        let extents = extents.iter().map(|extent| *extent as u64).collect();
        self.requirements.push(TensorRequirement { role, index, expert: 0, name, extents });
    }

    /// Adds a weight with these extents, and its bias with the first of them.
    fn add_weight_and_bias(
        &mut self,
        roles: [VisionRole; 2],
        index: usize,
        gguf: &str,
        transformers: &str,
        extents: &[usize],
    ) {
        for (role, kind, extents) in [(roles[0], "weight", extents), (roles[1], "bias", &extents[..1])] {
            let names = (format!("{gguf}.{kind}"), format!("{transformers}.{kind}"));
            self.add(TensorRole::Vision(role), index, names.0, names.1, extents);
        }
    }
}

impl Configuration {
    /// Returns every tensor of the model, layer after layer. The tensors of a vision tower follow
    /// if [`Configuration::vision`] has one.
    pub fn tensors(&self, naming: Naming) -> Vec<TensorRequirement> {
        let Configuration { vocabulary, width, heads, kv_heads, head_size: head, inner_size: inner, .. } = *self;
        let is_vision = self.architecture == ModelArchitecture::Qwen3Vl;
        let prefix = if is_vision { "model.language_model." } else { "model." };
        let mut to = TensorCollector { naming, prefix, requirements: Vec::new() };
        let text = str::to_owned;
        to.add(TensorRole::Embedding, 0, text("token_embd.weight"), text("embed_tokens.weight"), &[vocabulary, width]);
        for layer in 0..self.layers {
            let mut add = |role, gguf: &str, transformers: &str, extents: &[usize]| {
                let names = (format!("blk.{layer}.{gguf}"), format!("layers.{layer}.{transformers}"));
                to.add(role, layer, names.0, names.1, extents);
            };
            add(TensorRole::AttentionNorm, "attn_norm.weight", "input_layernorm.weight", &[width]);
            add(TensorRole::Query, "attn_q.weight", "self_attn.q_proj.weight", &[heads * head, width]);
            add(TensorRole::Key, "attn_k.weight", "self_attn.k_proj.weight", &[kv_heads * head, width]);
            add(TensorRole::Value, "attn_v.weight", "self_attn.v_proj.weight", &[kv_heads * head, width]);
            if self.architecture.has_biases() {
                add(TensorRole::QueryBias, "attn_q.bias", "self_attn.q_proj.bias", &[heads * head]);
                add(TensorRole::KeyBias, "attn_k.bias", "self_attn.k_proj.bias", &[kv_heads * head]);
                add(TensorRole::ValueBias, "attn_v.bias", "self_attn.v_proj.bias", &[kv_heads * head]);
            }
            if self.architecture.has_head_norms() {
                add(TensorRole::QueryNorm, "attn_q_norm.weight", "self_attn.q_norm.weight", &[head]);
                add(TensorRole::KeyNorm, "attn_k_norm.weight", "self_attn.k_norm.weight", &[head]);
            }
            add(TensorRole::AttentionOutput, "attn_output.weight", "self_attn.o_proj.weight", &[width, heads * head]);
            add(TensorRole::NetworkNorm, "ffn_norm.weight", "post_attention_layernorm.weight", &[width]);
            match &self.experts {
                None => {
                    add(TensorRole::Gate, "ffn_gate.weight", "mlp.gate_proj.weight", &[inner, width]);
                    add(TensorRole::Up, "ffn_up.weight", "mlp.up_proj.weight", &[inner, width]);
                    add(TensorRole::Down, "ffn_down.weight", "mlp.down_proj.weight", &[width, inner]);
                }
                Some(Experts { count, .. }) => {
                    add(TensorRole::Router, "ffn_gate_inp.weight", "mlp.gate.weight", &[*count, width]);
                    let kinds = [
                        (TensorRole::ExpertGate, "gate", [inner, width]),
                        (TensorRole::ExpertUp, "up", [inner, width]),
                        (TensorRole::ExpertDown, "down", [width, inner]),
                    ];
                    for (role, kind, [rows, columns]) in kinds {
                        let stacked = format!("ffn_{kind}_exps.weight");
                        match naming {
                            Naming::Gguf => add(role, &stacked, "", &[*count, rows, columns]),
                            Naming::Transformers => {
                                for expert in 0..*count {
                                    let name = format!("mlp.experts.{expert}.{kind}_proj.weight");
                                    add(role, "", &name, &[rows, columns]);
                                }
                            }
                        }
                    }
                }
            }
        }
        to.add(TensorRole::OutputNorm, 0, text("output_norm.weight"), text("norm.weight"), &[width]);
        to.prefix = "";
        if !self.has_tied_output {
            to.add(TensorRole::Output, 0, text("output.weight"), text("lm_head.weight"), &[vocabulary, width]);
        }
        if naming == Naming::Gguf && self.rotary.scaling == crate::configuration::Scaling::Divisors {
            to.add(TensorRole::RotaryDivisors, 0, text("rope_freqs.weight"), String::new(), &[head / 2]);
        }
        let mut all = to.requirements;
        number_experts(&mut all);
        if let Some(vision) = &self.vision {
            all.extend(vision.tensors(naming));
        }
        all
    }
}

/// Sets the indices of the experts of each layer, whose tensors follow one another.
fn number_experts(all: &mut [TensorRequirement]) {
    for i in 1..all.len() {
        let (before, now) = (&all[i - 1], &all[i]);
        if (before.role, before.index) == (now.role, now.index) {
            all[i].expert = before.expert + 1;
        }
    }
}

impl VisionConfiguration {
    /// Returns every tensor of the vision tower.
    pub fn tensors(&self, naming: Naming) -> Vec<TensorRequirement> {
        use VisionRole::*;
        let VisionConfiguration {
            layers,
            width,
            inner_size: inner,
            patch,
            frames,
            merge,
            positions,
            output,
            ref deepstack,
            ..
        } = *self;
        let mut to = TensorCollector { naming, prefix: "model.visual.", requirements: Vec::new() };
        match naming {
            Naming::Gguf => {
                for frame in 0..frames {
                    let name = if frame == 0 { String::new() } else { format!(".{frame}") };
                    let name = format!("v.patch_embd.weight{name}");
                    to.add(TensorRole::Vision(Patch), frame, name, String::new(), &[width, 3, patch, patch]);
                }
            }
            Naming::Transformers => {
                let name = "patch_embed.proj.weight".to_owned();
                to.add(TensorRole::Vision(Patch), 0, String::new(), name, &[width, 3, frames, patch, patch]);
            }
        }
        let names = ("v.patch_embd.bias".to_owned(), "patch_embed.proj.bias".to_owned());
        to.add(TensorRole::Vision(PatchBias), 0, names.0, names.1, &[width]);
        let names = ("v.position_embd.weight".to_owned(), "pos_embed.weight".to_owned());
        to.add(TensorRole::Vision(Positions), 0, names.0, names.1, &[positions, width]);
        for layer in 0..layers {
            let mut pair = |roles, gguf: &str, transformers: &str, extents: &[usize]| {
                let names = (format!("v.blk.{layer}.{gguf}"), format!("blocks.{layer}.{transformers}"));
                to.add_weight_and_bias(roles, layer, &names.0, &names.1, extents);
            };
            pair([AttentionNorm, AttentionNormBias], "ln1", "norm1", &[width]);
            pair([Projection, ProjectionBias], "attn_qkv", "attn.qkv", &[3 * width, width]);
            pair([AttentionOutput, AttentionOutputBias], "attn_out", "attn.proj", &[width, width]);
            pair([NetworkNorm, NetworkNormBias], "ln2", "norm2", &[width]);
            pair([Up, UpBias], "ffn_up", "mlp.linear_fc1", &[inner, width]);
            pair([Down, DownBias], "ffn_down", "mlp.linear_fc2", &[width, inner]);
        }
        // A square of patches becomes one token.
        let merged = merge * merge * width;
        to.add_weight_and_bias([MergerNorm, MergerNormBias], 0, "v.post_ln", "merger.norm", &[width]);
        to.add_weight_and_bias([MergerUp, MergerUpBias], 0, "mm.0", "merger.linear_fc1", &[merged, merged]);
        to.add_weight_and_bias([MergerDown, MergerDownBias], 0, "mm.2", "merger.linear_fc2", &[output, merged]);
        // GGUF numbers these mergers by their layer, transformers by their index in the list.
        for (i, layer) in deepstack.iter().enumerate() {
            let mut pair = |roles, gguf: &str, transformers: &str, extents: &[usize]| {
                let names =
                    (format!("v.deepstack.{layer}.{gguf}"), format!("deepstack_merger_list.{i}.{transformers}"));
                to.add_weight_and_bias(roles, i, &names.0, &names.1, extents);
            };
            pair([DeepstackNorm, DeepstackNormBias], "norm", "norm", &[merged]);
            pair([DeepstackUp, DeepstackUpBias], "fc1", "linear_fc1", &[merged, merged]);
            pair([DeepstackDown, DeepstackDownBias], "fc2", "linear_fc2", &[output, merged]);
        }
        to.requirements
    }
}

/// Tells whether the configuration determines a tensor, such as a table of frequencies. Files may
/// contain such a tensor, which the engine does not read.
pub(crate) fn is_derived(name: &str) -> bool {
    name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd.weight")
}
