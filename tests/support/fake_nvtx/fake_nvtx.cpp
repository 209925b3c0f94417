// SPDX-License-Identifier: Apache-2.0
// A tool that NVTX's headers open (NVTX_INJECTION64_PATH), as Nsight Systems is one: it notes
// ranges.
#include "support/fake_nvtx/fake_nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstring>
#include <string>

namespace {

struct Notes {
  std::string domain;
  std::string text;
  int depth = 0;
};
Notes notes;

nvtxDomainHandle_t create(const char* name) {
  notes.domain = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&notes);
}
void destroy(nvtxDomainHandle_t) {}
int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  if (notes.domain == "trireme" && event->messageType == NVTX_MESSAGE_TYPE_ASCII) {
    notes.text += std::string(2 * static_cast<std::size_t>(notes.depth), ' ');
    notes.text += std::string(event->message.ascii) + "\n";
  }
  return notes.depth++;
}
int pop(nvtxDomainHandle_t) {
  return --notes.depth;
}

template <typename Function>
void set(NvtxFunctionTable table, unsigned int id, Function* function) {
  static_assert(sizeof(function) == sizeof(void*));
  std::memcpy(static_cast<void*>(table[id]), static_cast<const void*>(&function), sizeof(function));
}

}  // namespace

extern "C" {

const char* fake_nvtx_ranges() {
  return notes.text.c_str();
}
int fake_nvtx_depth() {
  return notes.depth;
}

// NOLINTNEXTLINE(readability-identifier-naming): the name that NVTX looks for
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  set(table, NVTX_CBID_CORE2_DomainCreateA, &create);
  set(table, NVTX_CBID_CORE2_DomainDestroy, &destroy);
  set(table, NVTX_CBID_CORE2_DomainRangePushEx, &push);
  set(table, NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}
}
