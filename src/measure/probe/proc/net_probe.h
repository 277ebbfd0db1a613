// The network: bytes and drops per interface from /proc/net/dev, and RDMA ports from /sys/class/infiniband,
// whose traffic no network interface counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "measure/probe/counter.h"
#include "measure/probe/probe.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

class NetProbe : public Probe {
 public:
  explicit NetProbe(const Machine& machine);

  std::string_view name() const override { return "net"; }
  Rate rate() const override { return Rate::kSlow; }
  void Sample(int64_t t_ns, Sink& sink) override;

 private:
  struct Interface {
    Counter received, sent, dropped;
    record::SeriesKey receive, send, drops;
  };
  struct RdmaPort {
    TextFile received, sent;
    Counter received_words, sent_words;
    record::SeriesKey receive, send;
  };

  void FindRdmaPorts(const std::string& directory);
  void ReadInterfaces(int64_t t_ns, Sink& sink);
  void ReadRdmaPorts(int64_t t_ns, Sink& sink);

  TextFile net_dev_;
  std::map<std::string, Interface, std::less<>> interfaces_;
  std::vector<RdmaPort> rdma_ports_;
};

}  // namespace fullbore::probe
