#include "explain/diagnose/shared_cores.h"

#include <gtest/gtest.h>

namespace fullbore::diagnose {
namespace {

// Whatever a recording claims, it is not counted to.
TEST(SharedCoresTest, AMachineOfCountlessCoresIsJudgedInNoTime) {
  replay::Pipeline pipeline;
  pipeline.consume_ns = {1e7};
  pipeline.fetch_ns = {2e7};
  pipeline.fetch_cpu_ns = 2e7;
  pipeline.train_cpu_ns = pipeline.parallel_ns = 8e7;
  for (const double threads : {8.0, 2e15}) {
    pipeline.cores = 1e15;
    pipeline.threads = threads;
    EXPECT_LE(ShareCores(pipeline, 3e7).workers, 256);
  }
}

}  // namespace
}  // namespace fullbore::diagnose
