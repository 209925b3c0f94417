// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"
#include "trireme/base/text.hpp"

#include "sinks.hpp"

namespace trireme::track {

std::string file_name_of(const std::string& name) {
  std::string file = name;
  for (char& letter : file) {
    if (letter == '/' || base::is_control(letter)) letter = '_';
  }
  // Names of only dots are those of folders.
  return file.find_first_not_of('.') == std::string::npos ? "_" + file : file;
}

std::unique_ptr<Sink> make_sink(const Target& target, const Sync::Options& options) {
  switch (target.kind) {
    case Kind::tensorboard:
      return tensorboard_sink(target.place);
    case Kind::wandb:
      return wandb_sink(target.place);
    case Kind::mlflow:
      return mlflow_sink(target.place, options);
    case Kind::otlp:
      return otlp_sink(target.place, options);
    case Kind::prometheus:
      return prometheus_sink(target.place);
  }
  TRIREME_EXPECT(false, "each kind has a sink");
  return nullptr;
}

}  // namespace trireme::track
