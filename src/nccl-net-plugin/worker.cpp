// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "abi.hpp"
#include "lanes.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace trireme::nccl_net {
namespace {

void check(ucs_status_t status, const char* doing) {
  if (status != UCS_OK) throw_ucx(doing, status);
}

void finish(void* request, ucs_status_t status, Operation& operation) {
  operation.status = status;
  operation.handle = nullptr;
  operation.done = true;
  ucp_request_free(request);
}
void sent(void* request, ucs_status_t status, void* operation) {
  finish(request, status, *static_cast<Operation*>(operation));
}
void received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
              void* user_data) {
  auto& operation = *static_cast<Operation*>(user_data);
  operation.bytes = info->length;
  finish(request, status, operation);
}
ucp_context_h open_context(const std::vector<std::pair<std::string, std::string>>& settings) {
  ucp_config_t* raw = nullptr;
  check(ucp_config_read(nullptr, nullptr, &raw), "read its configuration");
  const std::unique_ptr<ucp_config_t, void (*)(ucp_config_t*)> config(raw, ucp_config_release);
  for (const auto& [name, value] : settings) {
    check(ucp_config_modify(raw, name.c_str(), value.c_str()), name.c_str());
  }
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
  parameters.mt_workers_shared = 1;
  ucp_context_h context = nullptr;
  check(ucp_init(&parameters, raw, &context), "open a device");
  return context;
}

bool sees_cuda(ucp_context_h context) {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(ucp_context_query(context, &attributes), "ask for memory types");
  return (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

ucs_memory_type_t memory_type(int type) {
  return type == pointer_cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

}  // namespace

void throw_ucx(const char* doing, ucs_status_t status) {
  auto code = base::ExitCode::internal;
  if (status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_ENDPOINT_TIMEOUT ||
      status == UCS_ERR_UNREACHABLE || status == UCS_ERR_NOT_CONNECTED ||
      status == UCS_ERR_REJECTED || status == UCS_ERR_CANCELED) {
    code = base::ExitCode::peer;
  }
  if (status == UCS_ERR_MESSAGE_TRUNCATED) code = base::ExitCode::usage;
  throw base::Error(code, base::format("UCX cannot {}: {}", doing, ucs_status_string(status)));
}

Worker::Worker(const std::vector<std::pair<std::string, std::string>>& settings)
    : context_(open_context(settings)) {
  moves_cuda_memory_ = sees_cuda(context_);
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  const auto status = ucp_worker_create(context_, &parameters, &worker_);
  if (status != UCS_OK) {
    ucp_cleanup(context_);
    throw_ucx("start a worker", status);
  }
}

Worker::~Worker() {
  for (auto& [begin, registration] : registrations_) unmap(registration);
  if (self_.handle != nullptr) close(self_, 1.0);
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

std::vector<std::byte> Worker::address() const {
  ucp_address_t* raw = nullptr;
  std::size_t size = 0;
  check(ucp_worker_get_address(worker_, &raw, &size), "tell its address");
  std::vector<std::byte> copy(size);
  std::memcpy(copy.data(), raw, size);
  ucp_worker_release_address(worker_, raw);
  return copy;
}

void Worker::connect(const std::vector<std::byte>& address, Endpoint& endpoint) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  // UCX's own error handling is off: it would exclude shared memory and zero-copy over TCP. A
  // peer's death is detected by its socket (connection.hpp).
  check(ucp_ep_create(worker_, &parameters, &endpoint.handle), "connect to a peer");
}

void Worker::close(Endpoint& endpoint, double seconds) {
  if (endpoint.handle == nullptr) return;
  using Clock = std::chrono::steady_clock;
  ucp_request_param_t parameters{};
  auto* request = ucp_ep_close_nbx(endpoint.handle, &parameters);
  endpoint.handle = nullptr;
  if (!UCS_PTR_IS_PTR(request)) return;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (ucp_request_check_status(request) == UCS_INPROGRESS && Clock::now() < end) progress();
  // Requests that are not done by then end with the worker.
  ucp_request_free(request);
}

std::string Worker::way_of(const Endpoint& endpoint) const {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const stream = ::open_memstream(&text, &size);
  if (stream == nullptr) return {};
  ucp_ep_print_info(endpoint.handle, stream);
  std::fclose(stream);
  const std::unique_ptr<char, void (*)(void*)> owned(text, std::free);
  return base::format("{}", base::join(lanes_of({text, size}), ", "));
}

void Worker::start(ucs_status_ptr_t outcome, Operation& operation) {
  operation.done = !UCS_PTR_IS_PTR(outcome);
  operation.status = operation.done ? UCS_PTR_STATUS(outcome) : UCS_INPROGRESS;
  operation.handle = operation.done ? nullptr : outcome;
}

void Worker::send(const Endpoint& endpoint, const void* data, std::size_t size, std::uint64_t tag,
                  Operation& operation) {
  operation.done = false;
  operation.bytes = size;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = sent;
  parameters.user_data = &operation;
  start(ucp_tag_send_nbx(endpoint.handle, data, size, tag, &parameters), operation);
}

void Worker::receive(void* data, std::size_t size, std::uint64_t tag, Operation& operation) {
  operation.done = false;
  ucp_request_param_t parameters{};
  // Callback is forced: only the callback gets the received length.
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  parameters.cb.recv = received;
  parameters.user_data = &operation;
  auto* outcome = ucp_tag_recv_nbx(worker_, data, size, tag, ~std::uint64_t{0}, &parameters);
  // The callback may have run already.
  if (operation.done) return;
  start(outcome, operation);
}

void Worker::read_back(const void* data, Registration& registration, Operation& operation) {
  if (self_.handle == nullptr) connect(address(), self_);
  if (registration.own_key == nullptr) {
    void* packed = nullptr;
    std::size_t size = 0;
    check(ucp_rkey_pack(context_, registration.memory, &packed, &size), "share memory");
    const auto status = ucp_ep_rkey_unpack(self_.handle, packed, &registration.own_key);
    ucp_rkey_buffer_release(packed);
    check(status, "see its own memory");
  }
  operation.done = false;
  operation.bytes = 0;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = sent;
  parameters.user_data = &operation;
  start(ucp_get_nbx(self_.handle, &sink_, 1, reinterpret_cast<std::uintptr_t>(data),
                    registration.own_key, &parameters),
        operation);
}

void Worker::cancel(Operation& operation) {
  if (operation.done) return;
  ucp_request_cancel(worker_, operation.handle);
}

Registration* Worker::register_memory(void* data, std::size_t size, int type) {
  auto* const begin = static_cast<std::byte*>(data);
  for (auto it = registrations_.begin(); it != registrations_.upper_bound(begin); ++it) {
    auto& known = it->second;
    if (known.type == type && begin + size <= known.begin + known.size) {
      ++known.users;
      return &known;
    }
  }
  ucp_mem_map_params_t parameters{};
  parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                          UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  parameters.address = data;
  parameters.length = size;
  parameters.memory_type = memory_type(type);
  Registration made{begin, size, type, nullptr, nullptr, 1};
  check(ucp_mem_map(context_, &parameters, &made.memory), "register memory");
  return &registrations_.emplace(begin, made)->second;
}

void Worker::unmap(Registration& registration) {
  if (registration.own_key != nullptr) ucp_rkey_destroy(registration.own_key);
  ucp_mem_unmap(context_, registration.memory);
}

void Worker::release(Registration* registration) {
  if (--registration->users > 0) return;
  // NCCL frees the memory next: a kept registration would describe pages of other data.
  unmap(*registration);
  const auto range = registrations_.equal_range(registration->begin);
  for (auto it = range.first; it != range.second; ++it) {
    if (&it->second == registration) {
      registrations_.erase(it);
      return;
    }
  }
}

}  // namespace trireme::nccl_net
