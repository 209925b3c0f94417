// SPDX-License-Identifier: Apache-2.0
// The table of fields: generation_config.json and tokenizer_config.json.
#include "folder_fields.hpp"

namespace trireme::huggingface {
namespace {

using enum FieldPlace;
using enum Treatment;

constexpr std::string_view sampling = "how tokens are drawn: options of trireme generate say it";
constexpr std::string_view absent = "trireme generate has no such rule";
constexpr std::string_view speed = "speed and memory alone";
constexpr std::string_view returned = "what is returned";
constexpr std::string_view limits = "--max-tokens of trireme generate says it";

constexpr FolderField generation_table[] = {
    {generation, "eos_token_id", "all", read, "null",
     "ids at which texts end: an id or a list, of which the first ends documents"},
    {generation, "bos_token_id", "all", ignored, "",
     "kept for export; the template of tokenizer.json begins texts"},
    {generation, "pad_token_id", "all", ignored, "", "kept for export; nothing is padded"},
    {generation, "do_sample", "all", warned, "[null, false]", sampling},
    {generation, "temperature", "all", warned, "[null, 1.0]", sampling},
    {generation, "top_k", "all", warned, "[null, 0, 50]", sampling},
    {generation, "top_p", "all", warned, "[null, 1.0]", sampling},
    {generation, "min_p", "all", warned, "[null, 0.0]", absent},
    {generation, "top_h", "all", warned, "[null]", absent},
    {generation, "typical_p", "all", warned, "[null, 1.0]", absent},
    {generation, "epsilon_cutoff", "all", warned, "[null, 0.0]", absent},
    {generation, "eta_cutoff", "all", warned, "[null, 0.0]", absent},
    {generation, "repetition_penalty", "all", warned, "[null, 1.0]", absent},
    {generation, "encoder_repetition_penalty", "all", warned, "[null, 1.0]", absent},
    {generation, "no_repeat_ngram_size", "all", warned, "[null, 0]", absent},
    {generation, "encoder_no_repeat_ngram_size", "all", warned, "[null, 0]", absent},
    {generation, "bad_words_ids", "all", warned, "[null, []]", absent},
    {generation, "force_words_ids", "all", warned, "[null, []]", absent},
    {generation, "constraints", "all", warned, "[null]", absent},
    {generation, "sequence_bias", "all", warned, "[null, {}]", absent},
    {generation, "suppress_tokens", "all", warned, "[null, []]", absent},
    {generation, "begin_suppress_tokens", "all", warned, "[null, []]", absent},
    {generation, "forced_bos_token_id", "all", warned, "[null]", absent},
    {generation, "forced_eos_token_id", "all", warned, "[null]", absent},
    {generation, "exponential_decay_length_penalty", "all", warned, "[null]", absent},
    {generation, "renormalize_logits", "all", warned, "[null, false]", absent},
    {generation, "remove_invalid_values", "all", warned, "[null, false]", absent},
    {generation, "guidance_scale", "all", warned, "[null, 1.0]", absent},
    {generation, "watermarking_config", "all", warned, "[null]", absent},
    {generation, "token_healing", "all", warned, "[null, false]", absent},
    {generation, "penalty_alpha", "all", warned, "[null, 0.0]", absent},
    {generation, "dola_layers", "all", warned, "[null]", absent},
    {generation, "num_beams", "all", warned, "[null, 1]", absent},
    {generation, "num_beam_groups", "all", warned, "[null, 1]", absent},
    {generation, "diversity_penalty", "all", warned, "[null, 0.0]", absent},
    {generation, "num_return_sequences", "all", warned, "[null, 1]", absent},
    {generation, "min_length", "all", warned, "[null, 0]", absent},
    {generation, "min_new_tokens", "all", warned, "[null, 0]", absent},
    {generation, "stop_strings", "all", warned, "[null, []]", "--stop of trireme generate says it"},
    {generation, "length_penalty", "all", ignored, "", "counts only with num_beams"},
    {generation, "early_stopping", "all", ignored, "", "counts only with num_beams"},
    {generation, "max_length", "all", ignored, "", limits},
    {generation, "max_new_tokens", "all", ignored, "", limits},
    {generation, "max_time", "all", ignored, "", limits},
    {generation, "decoder_start_token_id", "all", ignored, "", "there is no encoder"},
    {generation, "use_cache", "all", ignored, "", speed},
    {generation, "cache_implementation", "all", ignored, "", speed},
    {generation, "cache_config", "all", ignored, "", speed},
    {generation, "max_cache_len", "all", ignored, "", speed},
    {generation, "prefill_chunk_size", "all", ignored, "", speed},
    {generation, "compile_config", "all", ignored, "", speed},
    {generation, "disable_compile", "all", ignored, "", speed},
    {generation, "continuous_batching_config", "all", ignored, "", speed},
    {generation, "low_memory", "all", ignored, "", speed},
    {generation, "is_assistant", "all", ignored, "", "drafts, which change no token"},
    {generation, "num_assistant_tokens", "all", ignored, "", "drafts, which change no token"},
    {generation, "num_assistant_tokens_schedule", "all", ignored, "",
     "drafts, which change no token"},
    {generation, "assistant_confidence_threshold", "all", ignored, "",
     "drafts, which change no token"},
    {generation, "assistant_early_exit", "all", ignored, "", "drafts, which change no token"},
    {generation, "assistant_lookbehind", "all", ignored, "", "drafts, which change no token"},
    {generation, "target_lookbehind", "all", ignored, "", "drafts, which change no token"},
    {generation, "prompt_lookup_num_tokens", "all", ignored, "", "drafts, which change no token"},
    {generation, "max_matching_ngram_size", "all", ignored, "", "drafts, which change no token"},
    {generation, "output_attentions", "all", ignored, "", returned},
    {generation, "output_hidden_states", "all", ignored, "", returned},
    {generation, "output_scores", "all", ignored, "", returned},
    {generation, "output_logits", "all", ignored, "", returned},
    {generation, "return_dict_in_generate", "all", ignored, "", returned},
    {generation, "_from_model_config", "all", ignored, "", "who wrote the file"},
    {generation, "transformers_version", "all", ignored, "", "who wrote the file"},
};

constexpr std::string_view padding = "nothing is padded or cut";
constexpr std::string_view as_tokenizer = "tokenizer.json says it";

constexpr FolderField tokenizer_table[] = {
    {tokenizer, "eos_token", "all", read, "null",
     "end of text where neither generation_config.json nor config.json declares one"},
    {tokenizer, "added_tokens_decoder", "all", checked, "",
     "added tokens; one that tokenizer.json has not, or as another id, is warned of"},
    {tokenizer, "additional_special_tokens", "all", checked, "",
     "added tokens; one that tokenizer.json has not is warned of"},
    {tokenizer, "extra_special_tokens", "all", checked, "",
     "added tokens; one that tokenizer.json has not is warned of"},
    {tokenizer, "add_prefix_space", "all", checked, "",
     "a blank before texts; warned of where tokenizer.json does otherwise"},
    {tokenizer, "split_special_tokens", "all", warned, "[null, false]",
     "special tokens in texts are read as text"},
    {tokenizer, "bos_token", "all", ignored, "", "the template of tokenizer.json begins texts"},
    {tokenizer, "add_bos_token", "all", ignored, "",
     "transformers 5, too, asks the template of tokenizer.json alone"},
    {tokenizer, "add_eos_token", "all", ignored, "",
     "transformers 5, too, asks the template of tokenizer.json alone"},
    {tokenizer, "unk_token", "all", ignored, "", "byte-level tokenizers know every text"},
    {tokenizer, "pad_token", "all", ignored, "", padding},
    {tokenizer, "sep_token", "all", ignored, "", as_tokenizer},
    {tokenizer, "cls_token", "all", ignored, "", as_tokenizer},
    {tokenizer, "mask_token", "all", ignored, "", as_tokenizer},
    {tokenizer, "padding_side", "all", ignored, "", padding},
    {tokenizer, "truncation_side", "all", ignored, "", padding},
    {tokenizer, "model_max_length", "all", ignored, "", padding},
    {tokenizer, "model_input_names", "all", ignored, "", padding},
    {tokenizer, "chat_template", "all", ignored, "", "kept for export; no chat is rendered"},
    {tokenizer, "use_default_system_prompt", "all", ignored, "", "no chat is rendered"},
    {tokenizer, "clean_up_tokenization_spaces", "all", ignored, "",
     "transformers 5, too, leaves texts of byte-level tokenizers alone"},
    {tokenizer, "spaces_between_special_tokens", "all", ignored, "", as_tokenizer},
    {tokenizer, "tokenizer_class", "all", ignored, "", as_tokenizer},
    {tokenizer, "tokenizer_file", "all", ignored, "", as_tokenizer},
    {tokenizer, "do_lower_case", "all", ignored, "", as_tokenizer},
    {tokenizer, "errors", "all", ignored, "", "bytes that are no UTF-8 become U+FFFD"},
    {tokenizer, "legacy", "all", ignored, "", as_tokenizer},
    {tokenizer, "sp_model_kwargs", "all", ignored, "", as_tokenizer},
    {tokenizer, "backend", "all", ignored, "", as_tokenizer},
    {tokenizer, "is_local", "all", ignored, "", "who wrote the file"},
    {tokenizer, "local_files_only", "all", ignored, "", "who wrote the file"},
    {tokenizer, "auto_map", "all", ignored, "", as_tokenizer},
    {tokenizer, "processor_class", "all", ignored, "", "pictures and sounds"},
    {tokenizer, "name_or_path", "all", ignored, "", "a name"},
    {tokenizer, "special_tokens_map_file", "all", ignored, "", "a name"},
};

}  // namespace

std::span<const FolderField> generation_fields() {
  return generation_table;
}

std::span<const FolderField> tokenizer_fields() {
  return tokenizer_table;
}

}  // namespace trireme::huggingface
