// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/generate.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/text.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/huggingface/folder_warnings.hpp"
#include "trireme/huggingface/weights.hpp"

#include "prompts.hpp"
#include "replica_decoding.hpp"
#include "stop_texts.hpp"

#include <algorithm>
#include <chrono>

namespace trireme::inference {

using data::Tokenizer;
namespace fs = std::filesystem;

namespace {

fs::path tokenizer_path(const GenerateRequest& request, const config::Config& config) {
  return request.tokenizer.empty() ? huggingface::tokenizer_for(config, request.weights)
                                   : request.tokenizer;
}

base::Result<Tokenizer> open_tokenizer(const GenerateRequest& request,
                                       const config::Config& config) {
  const auto path = tokenizer_path(request, config);
  if (path.empty()) {
    return base::usage_failure(base::format(
        "no tokenizer belongs to '{}' (prompts are text, models read tokens); name one with "
        "--tokenizer FILE",
        request.weights.string()));
  }
  return Tokenizer::load(path);
}

/// Says what the files beside the tokenizer ask for and is not done. First rank alone: it reads
/// them.
void say_unheeded(const GenerateRequest& request, const config::Config& config,
                  const Tokenizer& tokenizer) {
  const auto folder = tokenizer_path(request, config).parent_path();
  auto texts = huggingface::generation_warnings(folder);
  for (auto& text : huggingface::tokenizer_warnings(folder, tokenizer)) {
    texts.push_back(std::move(text));
  }
  for (const auto& text : texts) base::log::warning("inference", "{}", text);
}

DecoderOptions decoder_options(const config::Config& config, const model::ModelConfig& model,
                               const runtime::Cluster& cluster) {
  DecoderOptions options;
  options.model = model;
  options.mesh = cluster.mesh;
  options.rank = cluster.rank;
  for (const auto layers : config.options().parallel.stage_layers) {
    options.stage_layers.push_back(static_cast<int>(layers));
  }
  options.dtype = engine::compute_type(config.options().numerics);
  options.gpu_attention = engine::gpu_attention(config.options().numerics);
  return options;
}

/// The first prompt's answer as it comes, but for what may become a stop text.
class Stream {
 public:
  Stream(const AnswerListener& listener, const StopTexts& stops)
      : listener_(listener), stops_(stops) {}

  void add(std::string_view bytes) {
    text_ += bytes;
    show(stops_.settled(text_));
  }
  void end() { show(stops_.cut(text_)); }

 private:
  void show(std::size_t end) {
    if (end > shown_) listener_.piece(std::string_view(text_).substr(shown_, end - shown_));
    shown_ = std::max(shown_, end);
  }

  const AnswerListener& listener_;
  const StopTexts& stops_;
  std::string text_;
  std::size_t shown_ = 0;
};

/// Collective over the world. The root's texts, on all ranks.
std::vector<std::string> broadcast_texts(comm::ProcessGroup& world, std::vector<std::string> texts,
                                         int root) {
  // Number of prompts; their sizes; all of their bytes.
  const auto send = [&](std::vector<std::int32_t>& words) {
    world.broadcast(
        device::Tensor(words.data(), device::DType::i32, {static_cast<std::int64_t>(words.size())}),
        root);
  };
  std::vector<std::int32_t> count{static_cast<std::int32_t>(texts.size())};
  send(count);
  if (count.front() == 0) return {};
  texts.resize(static_cast<std::size_t>(count.front()));
  std::vector<std::int32_t> sizes;
  for (const auto& text : texts) sizes.push_back(static_cast<std::int32_t>(text.size()));
  send(sizes);
  std::string bytes;
  for (const auto& text : texts) bytes += text;
  std::size_t total = 0;
  for (const auto size : sizes) total += static_cast<std::size_t>(size);
  std::vector<std::int32_t> words(total / sizeof(std::int32_t) + 1);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(words.data()));
  send(words);
  const auto* at = reinterpret_cast<const char*>(words.data());
  for (std::size_t index = 0; index < texts.size(); ++index) {
    texts[index].assign(at, static_cast<std::size_t>(sizes[index]));
    at += sizes[index];
  }
  return texts;
}

void say_speed(const std::vector<DecodedSequence>& sequences, double seconds) {
  std::size_t prompt_tokens = 0;
  std::size_t new_tokens = 0;
  for (const auto& sequence : sequences) {
    prompt_tokens += sequence.prompt_size;
    new_tokens += sequence.ids.size() - sequence.prompt_size;
  }
  base::log::info("generate", "{} of {}, {} in {:.2f} s: {:.1f} tokens/s",
                  base::counted(std::ssize(sequences), "prompt"),
                  base::counted(static_cast<std::int64_t>(prompt_tokens), "token"),
                  base::counted(static_cast<std::int64_t>(new_tokens), "new token"), seconds,
                  static_cast<double>(new_tokens) / seconds);
}

}  // namespace

namespace {

base::Result<std::vector<std::string>> listed_prompts(std::string_view text,
                                                      const std::string& source) {
  const auto json = base::parse_json(text, "it");
  if (!json) {
    return base::usage_failure(
        base::format("'{}' begins with '[', as a JSON list of prompts does, but {}; mend the list, "
                     "or begin with an empty line where each line is a prompt",
                     source, json.failure().text));
  }
  std::vector<std::string> prompts;
  for (const auto& prompt : *json) {
    if (!prompt.is_string()) {
      return base::usage_failure(base::format(
          "'{}' is a JSON list but not of texts alone (entry {} is none, and each is a "
          "prompt); write texts in quotes",
          source, prompts.size() + 1));
    }
    prompts.push_back(prompt.get<std::string>());
  }
  return prompts;
}

}  // namespace

const char* name(Ending ending) {
  return ending == Ending::length ? "length" : "stop";
}

base::Result<std::vector<std::string>> parse_prompts(const std::string& text,
                                                     const std::string& source) {
  if (const auto problem = base::not_text(text)) {
    return base::usage_failure(base::format("'{}' {} (prompts are text in UTF-8); {}", source,
                                            problem->fact, problem->fix));
  }
  std::string_view rest(text);
  if (rest.starts_with(base::byte_order_mark)) rest.remove_prefix(base::byte_order_mark.size());
  if (rest.starts_with('[')) return listed_prompts(rest, source);
  std::vector<std::string> prompts;
  for (auto line : base::split(rest, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) prompts.emplace_back(line);
  }
  return prompts;
}

std::vector<std::string> prompts_from_input(runtime::Session& session,
                                            const std::function<std::vector<std::string>()>& read) {
  auto& cluster = session.cluster;
  auto& world = *cluster.world;
  // Launchers give standard input to the process that they call the first, whatever its rank.
  const bool has_input = cluster.identity.announced_rank.value_or(0) == 0;
  std::int32_t root = has_input ? world.rank() : -1;
  world.all_reduce(device::Tensor(&root, device::DType::i32, {1}), comm::ReduceOp::max);
  std::vector<std::string> prompts;
  comm::agree(world, comm::status_of([&] {
                if (world.rank() == root) prompts = read();
              }));
  return broadcast_texts(world, std::move(prompts), root);
}

void generate(const GenerateRequest& request, const config::Config& config,
              runtime::Session& session, const AnswerListener& listener) {
  auto& cluster = session.cluster;
  auto& world = *cluster.world;
  const auto key = checkpoint::read_key_on_first_rank(config.options().checkpoint.key_file, world);
  const auto model = comm::agree(world, huggingface::model_of_weights(request.weights, config));
  const auto tokenizer = comm::agree(world, open_tokenizer(request, config));
  comm::agree(world, comm::status_of([&] {
                if (world.rank() == 0) say_unheeded(request, config, tokenizer);
              }));
  const auto prompts =
      comm::agree(world, encode_prompts(request.prompts, tokenizer, model, "--tokenizer FILE"));
  const auto max_tokens = most_new_tokens(request, model, prompts);
  auto options = decoder_options(config, model, cluster);
  fit_to_prompts(options, prompts, request.batch, max_tokens);
  comm::agree(world, check(options));

  auto memory = engine::Memory::on(session.kernels->device(), measure(options));
  Decoder decoder(options, cluster.groups.views(), *session.kernels, memory);
  huggingface::load_parameters(request.weights, model,
                               {session.kernels->device(), decoder.parameter_parts()}, world, key);

  const StopTexts stops(request.stops);
  DecodingLimits limits{options.capacity.slots, options.rows_at_once, max_tokens,
                        tokenizer.vocab_size(), tokenizer.text_ends().ids};
  if (!stops.empty()) {
    limits.ends_with = [&](DecodedSequence& sequence, std::int32_t token) {
      const auto first_new = sequence.answer.size();
      sequence.answer += tokenizer.decode_bytes({&token, 1});
      return stops.found(sequence.answer, first_new);
    };
  }
  const bool speaks = world.rank() == 0;
  Stream stream(listener, stops);
  // Context-parallel ranks decode sequences of their own.
  auto& replicas = cluster.groups.views().replicas();
  ReplicaDecoding decoding(decoder, limits, request.sampling, share_of(prompts, replicas),
                           [&](const DecodedSequence& sequence, std::int32_t token) {
                             if (!speaks || sequence.index != 0) return;
                             stream.add(tokenizer.decode_bytes({&token, 1}));
                           });
  const auto begin = std::chrono::steady_clock::now();
  decoding.run();
  const auto all = gather(prompts, decoding.sequences(), max_tokens, replicas);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (speaks) {
    stream.end();
    for (const auto& sequence : all) listener.answer(answer_of(sequence, tokenizer, stops));
  }
  say_speed(all, seconds.count());
}

}  // namespace trireme::inference
