// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/nccl_result.hpp"

#include <cstddef>
#include <cstdint>

/// Binary interface of NCCL's network plugins, versions 9 to 11 (NCCL 2.24 to 2.28 and later), as
/// NCCL's ext-net/ describes it. Declared here because NCCL installs no header for it; a plugin
/// that is built without NCCL works with any NCCL that supports one of these versions.
namespace trireme::nccl_net {

using comm::nccl::Result;

enum class LogLevel : int { warning = 2, info = 3 };
inline constexpr unsigned long log_net = 0x10;
/// Flag of log lines about NCCL's start.
inline constexpr unsigned long log_init = 0x1;
using Logger = void (*)(LogLevel level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

inline constexpr std::size_t handle_bytes = 128;
inline constexpr int pointer_host = 1;
inline constexpr int pointer_cuda = 2;
/// Requests that a connection must be able to hold at once, groups of receives counting once.
inline constexpr int max_requests = 32;
inline constexpr int max_devices_per_nic = 4;
inline constexpr std::size_t max_message_bytes = std::size_t{1} << 40;

struct VirtualDevice {
  int count;
  int devices[max_devices_per_nic];
};

/// Versions 9 and 10.
struct Properties {
  char* name;
  char* pci_path;  ///< of the device in /sys; null for a virtual one
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int megabits_per_second;
  int port;
  float latency_us;
  int max_connections;
  int max_receives;
  int offload_type;  ///< 0: the host moves data
  int offload_version;
  VirtualDevice parts;
  std::size_t max_p2p_bytes;
  std::size_t max_collective_bytes;
};
struct PropertiesV11 {
  Properties common;
  int max_multi_request_size;
};

struct Configuration {
  int traffic_class;
};

using Accept = Result (*)(void* listener, void** connection, void** offload);
using Register = Result (*)(void* connection, void* data, std::size_t size, int type, void** mr);
using RegisterDmaBuf = Result (*)(void* connection, void* data, std::size_t size, int type,
                                  std::uint64_t offset, int descriptor, void** mr);
using Deregister = Result (*)(void* connection, void* mr);
using Send = Result (*)(void* connection, void* data, std::size_t size, int tag, void* mr,
                        void** request);
using Receive = Result (*)(void* connection, int count, void** data, std::size_t* sizes, int* tags,
                           void** mrs, void** request);
using ProfiledSend = Result (*)(void* connection, void* data, std::size_t size, int tag, void* mr,
                                void* profile, void** request);
using ProfiledReceive = Result (*)(void* connection, int count, void** data, std::size_t* sizes,
                                   int* tags, void** mrs, void** profiles, void** request);
using Flush = Result (*)(void* connection, int count, void** data, int* sizes, void** mrs,
                         void** request);
using Test = Result (*)(void* request, int* done, int* sizes);
using Close = Result (*)(void* object);
using DeviceRegistration = Result (*)(void* connection, void* mr, void** device_mr);
using Consumed = Result (*)(void* connection, int count, void* request);
using MakeVirtualDevice = Result (*)(int* device, VirtualDevice* parts);
using Devices = Result (*)(int* count);

/// Part of every table between `connect` and `send` (Memory), and the part behind `receive`
/// (Completion). Tables are rows of pointers, so a nested structure has the layout of its pointers.
struct Memory {
  Accept accept;
  Register register_memory;
  RegisterDmaBuf register_dma_buf;
  Deregister deregister_memory;
};
struct Completion {
  Flush flush;
  Test test;
  Close close_send;
  Close close_receive;
  Close close_listener;
  DeviceRegistration device_registration;
  Consumed consumed;
  MakeVirtualDevice make_virtual_device;
};

struct NetV9 {
  const char* name;
  Result (*init)(Logger logger);
  Devices devices;
  Result (*get_properties)(int device, Properties* properties);
  Result (*listen)(int device, void* handle, void** listener);
  Result (*connect)(int device, void* handle, void** connection, void** offload);
  Memory memory;
  Send send;
  Receive receive;
  Completion completion;
};

struct NetV10 {
  const char* name;
  Result (*init)(Logger logger, void* profiler);
  Devices devices;
  Result (*get_properties)(int device, Properties* properties);
  Result (*listen)(int device, void* handle, void** listener);
  Result (*connect)(int device, Configuration* configuration, void* handle, void** connection,
                    void** offload);
  Memory memory;
  ProfiledSend send;
  ProfiledReceive receive;
  Completion completion;
};

struct NetV11 {
  const char* name;
  Result (*init)(void** context, std::uint64_t communicator, Configuration* configuration,
                 Logger logger, void* profiler);
  Devices devices;
  Result (*get_properties)(int device, PropertiesV11* properties);
  Result (*listen)(void* context, int device, void* handle, void** listener);
  Result (*connect)(void* context, int device, void* handle, void** connection, void** offload);
  Memory memory;
  ProfiledSend send;
  ProfiledReceive receive;
  Completion completion;
  Result (*finalize)(void* context);
  Result (*set_attributes)(void* context, void* attributes);
};
static_assert(sizeof(NetV9) == 20 * sizeof(void*) && sizeof(NetV10) == sizeof(NetV9) &&
              sizeof(NetV11) == 22 * sizeof(void*));

}  // namespace trireme::nccl_net
