// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/cuda_libraries.hpp"
#include "trireme/base/format.hpp"
#include "trireme/comm/nccl.hpp"

#include "comm/nccl/abi.hpp"

#include <string>

/// Functions that need only the library itself.
namespace trireme::comm {
namespace {

constexpr const char* library_name = "libnccl.so.2";

void find_all(base::OpenedLibrary& library, nccl::Api& api) {
  library.find("ncclGetVersion", api.get_version);
  library.find("ncclGetUniqueId", api.get_unique_id);
  library.find("ncclCommInitRankConfig", api.init_rank);
  library.find_optional("ncclCommInitRankScalable", api.init_rank_scalable);
  library.find("ncclCommSplit", api.split);
  library.find("ncclCommFinalize", api.finalize);
  library.find("ncclCommDestroy", api.destroy);
  library.find("ncclCommAbort", api.abort);
  library.find("ncclCommGetAsyncError", api.get_async_error);
  library.find("ncclGetErrorString", api.get_error_string);
  library.find("ncclGetLastError", api.get_last_error);
  library.find("ncclGroupStart", api.group_start);
  library.find("ncclGroupEnd", api.group_end);
  library.find("ncclAllReduce", api.all_reduce);
  library.find("ncclReduceScatter", api.reduce_scatter);
  library.find("ncclAllGather", api.all_gather);
  library.find("ncclReduce", api.reduce);
  library.find("ncclBroadcast", api.broadcast);
  library.find("ncclSend", api.send);
  library.find("ncclRecv", api.receive);
  library.find_optional("ncclCommRegister", api.register_buffer);
  library.find_optional("ncclCommDeregister", api.deregister_buffer);
  library.find_optional("ncclMemAlloc", api.allocate);
  library.find_optional("ncclMemFree", api.free);
  library.find_optional("ncclCommWindowRegister", api.register_window);
  library.find_optional("ncclCommWindowDeregister", api.deregister_window);
}

struct Loaded {
  nccl::Api api;
  int version = 0;
  std::string path;
};

base::Result<Loaded> load() {
  auto opened = base::OpenedLibrary::open(base::places_of_cuda_library(library_name),
                                          "NCCL (it moves memory between GPUs)",
                                          "install it, or add its folder to LD_LIBRARY_PATH");
  if (!opened.ok()) return opened.failure();
  auto& library = *opened;
  Loaded loaded;
  find_all(library, loaded.api);
  const auto asked = loaded.api.get_version != nullptr ? loaded.api.get_version(&loaded.version)
                                                       : nccl::Result::internal_error;
  if (asked != nccl::Result::success || loaded.version < nccl::oldest_version ||
      !library.missing().empty()) {
    return base::Failure{
        base::ExitCode::topology,
        base::format("NCCL {} is too old (groups are split and polled, which 2.18 can{}); install "
                     "a newer one",
                     nccl_version_text(loaded.version),
                     library.missing().empty()
                         ? ""
                         : base::format("; it lacks {}", base::join(library.missing(), ", ")))};
  }
  loaded.path = library.path();
  return loaded;
}

}  // namespace

std::string nccl_version_text(int version) {
  return base::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

base::Result<NcclLibrary> load_nccl() {
  static const base::Result<Loaded> loaded = load();
  if (!loaded.ok()) return loaded.failure();
  return NcclLibrary{&loaded->api, loaded->version, loaded->path};
}

}  // namespace trireme::comm
