#include "explain/diagnose/framework_words.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "record/json_text.h"

namespace fullbore::diagnose {

namespace {

using nlohmann::json;

// A fact that is an object; an empty one where it was not stated.
json ObjectOf(const View& view, const char* fact) {
  const auto text = view.Fact(fact);
  json value = text ? record::ParseJson(*text) : json::object();
  return value.is_object() ? value : json::object();
}

// Whether a map of the pipeline works on one batch or sample at a time. The fact has a list of its calls of map: a
// number, "AUTOTUNE", or null for one at a time.
bool HasSerialMap(const json& pipeline) {
  const auto calls = pipeline.find("num_parallel_calls");
  if (calls == pipeline.end() || !calls->is_object()) return false;
  const auto map = calls->find("map");
  return map != calls->end() && map->is_array() &&
         std::ranges::any_of(*map, [](const json& one) { return one.is_null(); });
}

// https://www.tensorflow.org/guide/data_performance
LoaderAdvice OfTfData(const json& pipeline) {
  LoaderAdvice advice;
  if (HasSerialMap(pipeline)) {
    advice.cause = "serial-map";
    advice.why = "the pipeline's map works on one element at a time";
    advice.change = "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE)";
    advice.fix.push_back(advice.change + ": as many elements at once as there are cores");
  }
  if (pipeline.empty()) {  // nothing of it could be seen
    advice.fix.emplace_back(
        "a pipeline whose maps have num_parallel_calls=tf.data.AUTOTUNE, and that ends with "
        ".prefetch(tf.data.AUTOTUNE), prepares batches beside the training");
    return advice;
  }
  if (!pipeline.contains("prefetch"))
    advice.fix.emplace_back(
        "end the pipeline with .prefetch(tf.data.AUTOTUNE): it prepares batches beside the training");
  const auto cache = pipeline.find("cache");
  if (cache == pipeline.end() || *cache != true)
    advice.fix.emplace_back(
        ".cache() behind the costly part of the pipeline, where the data fits into memory");
  advice.fix.emplace_back(
      "where files are read: .interleave(..., num_parallel_calls=tf.data.AUTOTUNE) over several of them");
  return advice;
}

// https://keras.io/api/models/model_training_apis and keras.utils.PyDataset
LoaderAdvice OfKeras(const std::string& library) {
  if (library == "keras.PyDataset") {
    return {"",
            "",
            "",
            {"PyDataset(workers=..., use_multiprocessing=True), as long as cores are free",
             "a larger max_queue_size smooths waits that come and go"}};
  }
  return {"",
          "",
          "",
          {"give fit a keras.utils.PyDataset(workers=...), or a tf.data pipeline that ends with "
           ".prefetch(tf.data.AUTOTUNE), in place of what prepares its batches on the training's thread"}};
}

}  // namespace

std::string BesideTheTraining(const View& view) {
  const std::string framework = view.Fact("framework").value_or("torch");
  if (framework == "tensorflow")
    return "a tf.data pipeline: .map(..., num_parallel_calls=tf.data.AUTOTUNE) and "
           ".prefetch(tf.data.AUTOTUNE)";
  if (framework == "keras")
    return "a keras.utils.PyDataset(workers=..., use_multiprocessing=True), or a tf.data pipeline with "
           ".prefetch(tf.data.AUTOTUNE)";
  if (framework == "jax")
    return "grain (grain.DataLoader(worker_count=...)), tf.data with .prefetch(tf.data.AUTOTUNE), or torch's "
           "DataLoader(num_workers=...)";
  return "a Dataset (or an IterableDataset) behind DataLoader(num_workers=...)";
}

LoaderAdvice AdviceFor(const View& view, const record::Loader& loader) {
  if (loader.library == "tf.data") return OfTfData(ObjectOf(view, "tf_data"));
  if (loader.library.starts_with("keras.")) return OfKeras(loader.library);
  if (loader.library == "grain")
    return {"", "", "", {"raise grain's worker_count as long as cores are free, and its worker_buffer_size"}};
  return {};
}

}  // namespace fullbore::diagnose
