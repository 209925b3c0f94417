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
    {generation, "epsilon_cutoff eta_cutoff", "all", warned, "[null, 0.0]", absent},
    {generation, "repetition_penalty encoder_repetition_penalty", "all", warned, "[null, 1.0]",
     absent},
    {generation, "no_repeat_ngram_size encoder_no_repeat_ngram_size", "all", warned, "[null, 0]",
     absent},
    {generation, "bad_words_ids force_words_ids", "all", warned, "[null, []]", absent},
    {generation, "constraints", "all", warned, "[null]", absent},
    {generation, "sequence_bias", "all", warned, "[null, {}]", absent},
    {generation, "suppress_tokens begin_suppress_tokens", "all", warned, "[null, []]", absent},
    {generation, "forced_bos_token_id forced_eos_token_id exponential_decay_length_penalty", "all",
     warned, "[null]", absent},
    {generation, "renormalize_logits remove_invalid_values", "all", warned, "[null, false]",
     absent},
    {generation, "guidance_scale", "all", warned, "[null, 1.0]", absent},
    {generation, "watermarking_config", "all", warned, "[null]", absent},
    {generation, "token_healing", "all", warned, "[null, false]", absent},
    {generation, "penalty_alpha", "all", warned, "[null, 0.0]", absent},
    {generation, "dola_layers", "all", warned, "[null]", absent},
    {generation, "num_beams num_beam_groups", "all", warned, "[null, 1]", absent},
    {generation, "diversity_penalty", "all", warned, "[null, 0.0]", absent},
    {generation, "num_return_sequences", "all", warned, "[null, 1]", absent},
    {generation, "min_length min_new_tokens", "all", warned, "[null, 0]", absent},
    {generation, "stop_strings", "all", warned, "[null, []]", "--stop of trireme generate says it"},
    {generation, "length_penalty early_stopping", "all", ignored, "", "counts only with num_beams"},
    {generation, "max_length max_new_tokens max_time", "all", ignored, "", limits},
    {generation, "decoder_start_token_id", "all", ignored, "", "there is no encoder"},
    {generation,
     "use_cache cache_implementation cache_config max_cache_len prefill_chunk_size compile_config "
     "disable_compile continuous_batching_config low_memory",
     "all", ignored, "", speed},
    {generation,
     "is_assistant num_assistant_tokens num_assistant_tokens_schedule "
     "assistant_confidence_threshold assistant_early_exit assistant_lookbehind target_lookbehind "
     "prompt_lookup_num_tokens max_matching_ngram_size",
     "all", ignored, "", "drafts, which change no token"},
    {generation,
     "output_attentions output_hidden_states output_scores output_logits return_dict_in_generate",
     "all", ignored, "", returned},
    {generation, "_from_model_config transformers_version", "all", ignored, "",
     "who wrote the file"},
};

constexpr std::string_view padding = "nothing is padded or cut";
constexpr std::string_view as_tokenizer = "tokenizer.json says it";

constexpr FolderField tokenizer_table[] = {
    {tokenizer, "eos_token", "all", read, "null",
     "end of text where neither generation_config.json nor config.json declares one"},
    {tokenizer, "added_tokens_decoder", "all", checked, "",
     "added tokens; one that tokenizer.json has not, or as another id, is warned of"},
    {tokenizer, "additional_special_tokens extra_special_tokens", "all", checked, "",
     "added tokens; one that tokenizer.json has not is warned of"},
    {tokenizer, "add_prefix_space", "all", checked, "",
     "a blank before texts; warned of where tokenizer.json does otherwise"},
    {tokenizer, "split_special_tokens", "all", warned, "[null, false]",
     "special tokens in texts are read as text"},
    {tokenizer, "bos_token", "all", ignored, "", "the template of tokenizer.json begins texts"},
    {tokenizer, "add_bos_token add_eos_token", "all", ignored, "",
     "transformers 5, too, asks the template of tokenizer.json alone"},
    {tokenizer, "unk_token", "all", ignored, "", "byte-level tokenizers know every text"},
    {tokenizer, "pad_token", "all", ignored, "", padding},
    {tokenizer, "sep_token cls_token mask_token", "all", ignored, "", as_tokenizer},
    {tokenizer, "padding_side truncation_side model_max_length model_input_names", "all", ignored,
     "", padding},
    {tokenizer, "chat_template", "all", ignored, "", "kept for export; no chat is rendered"},
    {tokenizer, "use_default_system_prompt", "all", ignored, "", "no chat is rendered"},
    {tokenizer, "clean_up_tokenization_spaces", "all", ignored, "",
     "transformers 5, too, leaves texts of byte-level tokenizers alone"},
    {tokenizer, "spaces_between_special_tokens tokenizer_class tokenizer_file do_lower_case", "all",
     ignored, "", as_tokenizer},
    {tokenizer, "errors", "all", ignored, "", "bytes that are no UTF-8 become U+FFFD"},
    {tokenizer, "legacy sp_model_kwargs backend", "all", ignored, "", as_tokenizer},
    {tokenizer, "is_local local_files_only", "all", ignored, "", "who wrote the file"},
    {tokenizer, "auto_map", "all", ignored, "", as_tokenizer},
    {tokenizer, "processor_class", "all", ignored, "", "pictures and sounds"},
    {tokenizer, "name_or_path special_tokens_map_file", "all", ignored, "", "a name"},
};

}  // namespace

std::span<const FolderField> generation_fields() {
  static const auto all = one_name_each(generation_table);
  return all;
}

std::span<const FolderField> tokenizer_fields() {
  static const auto all = one_name_each(tokenizer_table);
  return all;
}

}  // namespace trireme::huggingface
