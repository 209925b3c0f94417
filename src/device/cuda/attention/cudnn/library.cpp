// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/library.hpp"

#include "trireme/base/cuda_libraries.hpp"
#include "trireme/base/format.hpp"

/// The calls that need the library itself, and nothing else.
namespace trireme::device::cudnn {
namespace {

constexpr const char* library_name = "libcudnn.so.9";

base::Result<Library> load() {
  auto found = base::OpenedLibrary::open(base::places_of_cuda_library(library_name),
                                         "cuDNN (its attention is faster)",
                                         "install it, or add its folder to LD_LIBRARY_PATH");
  if (!found.ok()) return found.failure();
  auto& opened = *found;
  Library library;
  auto& api = library.api;
  opened.find("cudnnGetVersion", api.version);
  opened.find("cudnnGetErrorString", api.status_text);
  opened.find("cudnnGetLastErrorString", api.last_message);
  opened.find("cudnnCreate", api.create);
  opened.find("cudnnDestroy", api.destroy);
  opened.find("cudnnSetStream", api.set_stream);
  opened.find("cudnnBackendCreateDescriptor", api.create_descriptor);
  opened.find("cudnnBackendDestroyDescriptor", api.destroy_descriptor);
  opened.find("cudnnBackendSetAttribute", api.set_attribute);
  opened.find("cudnnBackendGetAttribute", api.get_attribute);
  opened.find("cudnnBackendFinalize", api.finalize);
  opened.find("cudnnBackendExecute", api.execute);
  if (!opened.missing().empty()) {
    return base::Failure{base::ExitCode::topology,
                         base::format("{} lacks {} (not cuDNN 9?); install cuDNN 9", library_name,
                                      base::join(opened.missing(), ", "))};
  }
  const auto version = api.version();
  library.version = base::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  library.path = opened.path();
  if (version < oldest_version || version >= newer_than_known) {
    return base::Failure{base::ExitCode::topology,
                         base::format("{} is version {} (only cuDNN 9 is known); install cuDNN 9",
                                      library.path, library.version)};
  }
  return library;
}

}  // namespace

base::Result<const Library*> load_library() {
  static const base::Result<Library> loaded = load();
  if (!loaded.ok()) return loaded.failure();
  return &loaded.value();
}

}  // namespace trireme::device::cudnn
