// The data loader: reads files, archives or an object store and makes normalised batches, in its own threads.
//
//   fullbore::loader::LoaderOptions options;
//   options.source.paths = {"photos/train"};
//   options.transforms = {RandomResizedCrop{224, 224}, RandomHorizontalFlip{}, Normalize{}};
//   options.batch_size = 64;
//   auto loader = fullbore::loader::Loader::Open(options);  // Result: .ok(), or .error() says why not
//   for (;;) {
//     auto batch = loader->Next();
//     if (!batch.ok() || !*batch) break;  // an error, or the end of the epoch
//     Train((*batch)->fields[0].data, (*batch)->fields[1].data);
//   }
//
// Which sample is in which row of which batch depends on the seed, the epoch and the number of ranks; never
// on the number of threads, the speed of the storage or where a run was resumed.
//
// With CMake: find_package(fullbore), then link to fullbore::loader, a static library. examples/loader is a
// stand-alone project that does so. Names and layouts may change between versions: rebuild after an upgrade.
#pragma once

#include "fullbore/loader/loader.h"
#include "fullbore/loader/options.h"
#include "fullbore/loader/transforms.h"
#include "fullbore/loader/types.h"
#include "fullbore/result.h"
