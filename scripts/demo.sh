#!/usr/bin/env bash
# The demo: train a ResNet on photos with a typical script, let fullbore say what is wrong, do what it says, and compare
# prediction and outcome. Everything it writes is in .fullbore/demo.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/setup.sh demo
scripts/build.sh release fullbore

python="$(demo_python)"
[ -n "$python" ] || die "no Python with torch, numpy and Pillow" "scripts/setup.sh demo"
fullbore=build/release/fullbore
demo=.fullbore/demo

# On a GPU the batches are larger, so the folder must be, too: an epoch is about 60 steps either way.
photos=2000 steps=240
if has_nvidia_gpu; then photos=8000; fi

say "photos, generated once: $demo/photos"
"$python" examples/make_photos.py "$demo/photos" --count "$photos"

# train NAME WORKERS: records a training run; its report goes to the terminal, $demo/NAME.json and NAME.html.
train() {
  "$fullbore" run --name "demo-$1" -o "$demo/runs" --json "$demo/$1.json" --html "$demo/$1.html" -- \
    "$python" examples/train_resnet.py --data "$demo/photos" --workers "$2" --steps "$steps"
}

say "1. the training as it is: DataLoader(num_workers=0)"
train before 0

workers="$("$python" scripts/demo_report.py workers "$demo/before.json")"
if [ -z "$workers" ]; then
  say "the recommended change is not a number of workers, and this demo applies no other by itself"
  exit 0
fi

say "2. the same training with the recommended change: num_workers=$workers"
train after "$workers"

say "3. what changed"
"$fullbore" compare "$("$python" scripts/demo_report.py source "$demo/before.json")" \
  "$("$python" scripts/demo_report.py source "$demo/after.json")"
"$python" scripts/demo_report.py table "$demo/before.json" "$demo/after.json"

say "4. the same, found by itself: fullbore tune tries what the recording says can gain, and proves it"
"$fullbore" tune --knobs num_workers --budget 4m --most 20s -o "$demo/runs" --json "$demo/tune.json" -- \
  "$python" examples/train_resnet.py --data "$demo/photos" --workers 0 --steps 100000
