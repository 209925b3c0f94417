// SPDX-License-Identifier: Apache-2.0
#include "spans.hpp"

#include "trireme/base/format.hpp"

#include "facts.hpp"

#include <map>

namespace trireme::track {
namespace {

using telemetry::SpanKind;
using telemetry::TraceSpan;

constexpr std::size_t trace_digits = 32;
constexpr std::size_t span_digits = 16;

/// The trace of a step: of the record's spans and of all ranks'.
std::string step_trace(const RunFacts& run, std::int64_t step) {
  return short_hash(base::format("{} step {}", run.id, step), trace_digits);
}
/// The step itself, which all other spans of its trace lie below.
std::string step_span(const RunFacts& run, std::int64_t step) {
  return short_hash(base::format("{} step {} itself", run.id, step), span_digits);
}

const char* name_of(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::step:
      return "train_step";
    case ActivityKind::data:
      return "load_batch";
    case ActivityKind::update:
      return "optimizer_step";
    case ActivityKind::evaluation:
      return "evaluate";
    case ActivityKind::save:
      return "save_checkpoint";
    case ActivityKind::load:
      return "load_checkpoint";
  }
  return "";
}

const char* name_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::step:
      return "train_step";
    case SpanKind::data:
      return "load_batch";
    case SpanKind::forward_backward:
      return "forward_backward";
    case SpanKind::forward:
      return "microbatch.forward";
    case SpanKind::backward:
      return "microbatch.backward";
    case SpanKind::embedding:
      return "embedding";
    case SpanKind::layer_forward:
      return "layer.forward";
    case SpanKind::layer_recompute:
      return "layer.recompute";
    case SpanKind::layer_backward_input:
      return "layer.backward_input";
    case SpanKind::layer_backward_weight:
      return "layer.backward_weight";
    case SpanKind::head:
      return "head";
    case SpanKind::tensor:
      return "tensor_parallel";
    case SpanKind::bubble:
      return "pipeline.wait";
    case SpanKind::gradients:
      return "grad_sync";
    case SpanKind::norm:
      return "grad_norm";
    case SpanKind::update:
      return "optimizer_step";
    case SpanKind::save:
      return "save_checkpoint";
    case SpanKind::evaluation:
      return "evaluate";
    case SpanKind::wait:
      return "wait";
    case SpanKind::operation:
      break;
  }
  return "collective";
}

/// "p2p.send", "collective.all_reduce", "wait.all_reduce".
std::string name_of(const TraceSpan& span) {
  if (span.kind == SpanKind::wait) return base::format("wait.{}", span.operation);
  if (span.kind != SpanKind::operation) return name_of(span.kind);
  if (span.operation == "send") return "p2p.send";
  if (span.operation == "receive") return "p2p.recv";
  return base::format("collective.{}", span.operation);
}

bool is_of_layer(SpanKind kind) {
  return kind == SpanKind::layer_forward || kind == SpanKind::layer_recompute ||
         kind == SpanKind::layer_backward_input || kind == SpanKind::layer_backward_weight;
}

Attributes attributes_of(const TraceSpan& span, std::int64_t step) {
  Attributes all{{"trireme.step", step}};
  const auto add = [&all](const char* key, std::int64_t value) {
    if (value >= 0) all.emplace_back(key, value);
  };
  add("trireme.micro_batch", span.place.micro_batch);
  add("trireme.chunk", span.place.chunk);
  if (is_of_layer(span.kind)) add("trireme.layer", span.place.number);
  if (span.operation.empty()) return all;
  all.emplace_back("trireme.group", span.group);
  all.emplace_back("trireme.bytes", span.bytes);
  all.emplace_back("trireme.sequence", span.number);
  add("trireme.peer", span.peer);
  add("trireme.tag", span.tag);
  return all;
}

/// Times of the step by use, where their places in the step are not known.
void add_times(const Row& row, Span& span) {
  for (const auto& point : row.points) {
    const auto& metric = metrics()[point.metric];
    const std::string_view name = metric.name;
    if (!name.starts_with("time/") || !name.ends_with("_ms")) continue;
    span.attributes.emplace_back(
        base::format("trireme.{}_seconds", name.substr(5, name.size() - 5 - 3)),
        point.value * metric.to_base_unit);
  }
}

Attributes resource_with_job(const RunFacts& run, const std::string& job) {
  return {{"service.name", "trireme"},
          {"service.instance.id", run.id},
          {"trireme.run", run.name},
          // Slurm's number where there is one: by it people find a job's spans.
          {"run.id", job.empty() ? run.id : job}};
}

}  // namespace

std::vector<Span> spans_of(const RunFacts& run, const Row& row) {
  std::vector<Span> spans;
  std::map<ActivityKind, int> counts;
  for (const auto& each : row.activities) {
    const int number = counts[each.kind]++;
    Span span{name_of(each.kind),           {}, {}, {}, each.begin_ns, each.end_ns,
              {{"trireme.step", each.step}}};
    if (each.kind == ActivityKind::step) {
      span.trace_id = step_trace(run, each.step);
      span.span_id = step_span(run, each.step);
      add_times(row, span);
    } else if (each.kind == ActivityKind::load) {
      const auto place = base::format("{} load {}", run.id, each.restart);
      span.trace_id = short_hash(place, trace_digits);
      span.span_id = short_hash(base::format("{} {}", place, number), span_digits);
    } else {
      span.trace_id = step_trace(run, each.step);
      span.span_id = short_hash(
          base::format("{} step {} {} {}", run.id, each.step, span.name, number), span_digits);
      span.parent_id = step_span(run, each.step);
    }
    spans.push_back(std::move(span));
  }
  return spans;
}

Attributes resource_of(const RunFacts& run, std::int64_t restart) {
  const auto job = run.jobs.find(restart);
  return resource_with_job(run, job == run.jobs.end() ? std::string() : job->second);
}

RankSpans::RankSpans(const RunFacts& run, const telemetry::RankTrace& trace)
    : run_(run),
      trace_(trace),
      parents_(trace.spans.size(), none),
      steps_(trace.spans.size(), trace.first_step) {
  std::vector<std::size_t> open;
  auto step = trace.first_step;
  for (std::size_t index = 0; index < trace.spans.size(); ++index) {
    const auto& span = trace.spans[index];
    while (!open.empty() && trace.spans[open.back()].end <= span.begin) open.pop_back();
    if (!open.empty()) parents_[index] = open.back();
    if (span.kind == SpanKind::step && span.place.number >= 0) step = span.place.number;
    steps_[index] = step;
    // An operation is under way beside what the thread does, and nothing lies in it.
    if (span.kind != SpanKind::operation) open.push_back(index);
  }
}

std::string RankSpans::id_of(std::size_t index) const {
  return short_hash(
      base::format("{} trace {} {} {}", run_.id, trace_.origin_unix_ns, trace_.rank, index),
      span_digits);
}

Span RankSpans::span_at(std::size_t index) const {
  const auto& span = trace_.spans[index];
  const auto step = steps_[index];
  const auto parent = parents_[index];
  return {name_of(span),
          step_trace(run_, step),
          id_of(index),
          parent == none ? step_span(run_, step) : id_of(parent),
          trace_.origin_unix_ns + span.begin,
          trace_.origin_unix_ns + span.end,
          attributes_of(span, step)};
}

std::vector<Span> RankSpans::next(std::size_t count) {
  std::vector<Span> spans;
  for (; next_ < trace_.spans.size() && spans.size() < count; ++next_) {
    spans.push_back(span_at(next_));
  }
  return spans;
}

Attributes RankSpans::resource() const {
  auto all = resource_with_job(run_, trace_.job);
  all.emplace_back("host.name", trace_.host);
  all.emplace_back("trireme.rank", trace_.rank);
  for (const auto& [axis, place] : trace_.coordinates) {
    all.emplace_back(base::format("trireme.{}", axis), place);
  }
  return all;
}

}  // namespace trireme::track
