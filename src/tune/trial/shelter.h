// Where the trials of one `measure` or `tune` leave what they write, and what keeps them from writing elsewhere: found
// once, before the first of them, so that the user is told what is not protected.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/isolate/protection.h"
#include "measure/isolate/scratch.h"

namespace fullbore::tune {

struct Shelter {
  isolate::Found found;
  std::string place;  // the directory that scratch directories are made in
  // With a view: what trials write to the caches of downloads and compilers, kept from one trial to the next and
  // deleted after the last. The caches themselves are not changed.
  std::shared_ptr<isolate::Scratch> caches;
};

// Tries the directory of runs first: it lies where the user has room. Then those for temporary files. Without a view,
// it is the latter. The directory of runs exists, or is empty where there is none to trust.
Result<Shelter> FindShelter(const std::string& runs_directory);

// The same, with caches of its own, for trials that run at the same time as those of the other.
Result<Shelter> AnotherLike(const Shelter& shelter);

// The directories of caches that exist, for downloads and compilers; none that holds the working directory.
std::vector<std::string> Caches();

}  // namespace fullbore::tune
