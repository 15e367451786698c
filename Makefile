# A thin front for Meson and Ninja: `make help` lists what it can do.
#
# MESON   the command, e.g. MESON="python3 /path/to/meson.py"
# CC      the compiler of the ordinary and the sanitizer builds (Meson's choice if not given)
# BUILD   the build folder; the others are named after it (build-asan, build-tsan, build-fuzz)
# PREFIX, DESTDIR   where `make install` puts things
MESON  ?= meson
BUILD  ?= build
PREFIX ?= /usr/local
# Which programs `make lines` runs: words in their names, or options of tests/lines/lines.py.
LINES ?=
# Which rows `make zoo` runs: words in their names, or options of zoo/zoo ("torch --policy protect", "--vm trainer").
ZOO ?=
# How many inputs `make fuzz` tries, over all targets together.
FUZZ_INPUTS ?= 12000000

PACKAGES := $(BUILD)-packages
CLANG := $(or $(shell command -v clang-14 || command -v clang),clang)

# Warnings are errors where we look at them: in CI and in the sanitizer builds. There, what a sanitizer puts into the
# code makes gcc warn of nulls and cut strings that are not, and of fences (which are between processes here).
PLAIN := --prefix=$(abspath $(PREFIX)) -Dbuildtype=debugoptimized -Dwerror=$(if $(CI),true,false)
CHECKED := -Dbuildtype=debugoptimized -Dwerror=true -Db_lundef=false
QUIET := -Wno-unknown-warning-option -Wno-format-overflow -Wno-format-truncation -Wno-maybe-uninitialized -Wno-tsan
# At -O2 gcc takes over twice as long for what has these sanitizers in it as at -Og, where more is left for them to look at.
ASAN := $(CHECKED) -Doptimization=g -Db_sanitize=address,undefined -Dc_args="$(QUIET) -g1"
TSAN := $(CHECKED) -Db_sanitize=thread -Dc_args="$(QUIET)"
FUZZ := $(CHECKED) -Db_sanitize=address,undefined -Dc_args=-fsanitize=fuzzer-no-link -Dtests=false -Dfuzz=true

.PHONY: all
all: ## build build/antifreeze
	@tools/configure $(BUILD) $(PLAIN)
	@$(MESON) compile -C $(BUILD) --ninja-args=all-parts # by its name alone Meson would not find it in a folder of before

.PHONY: demo
demo: ## train a small network, watched by Antifreeze
	@tools/deps demo
	@$(MAKE) --no-print-directory all
	$(BUILD)/antifreeze demo none
	@echo "That was a good run. Choose what shall go wrong: $(BUILD)/antifreeze demo"

.PHONY: test
test: ## run all tests: plain, under sanitizers, and a short run of every fuzzer
	@tools/deps test
	@$(MAKE) --no-print-directory all configure-asan configure-tsan configure-fuzz
	@tools/run_tests.py $(BUILD):-frameworks $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz

.PHONY: test-frameworks
test-frameworks: ## get torch, tensorflow, keras, transformers and lightning (some 3 GB, once) and run the tests that need them
	@tools/deps test
	@tools/deps test-frameworks
	@$(MAKE) --no-print-directory all
	@tools/frameworks $(BUILD)-frameworks
	@MESON_TESTTHREADS=$$(($$(nproc) + 1)) AFZ_FRAMEWORKS_PYTHON=$(abspath $(BUILD))-frameworks/bin/python tools/run_tests.py $(BUILD):frameworks

.PHONY: test-vm
test-vm: all ## check figures and holds on cgroup v2, PSI, systemd, swap and zram, in a small virtual machine (x86-64 Debian)
	@$(MESON) compile -C $(BUILD) hold_driver
	@rm -rf $(BUILD)/share && mkdir -p $(BUILD)/share
	@cp $(BUILD)/antifreeze $(BUILD)/tests/hold_driver $(addprefix tests/,$(VM_TESTS)) $(BUILD)/share
	$(VM) --swap 512M --zram 128M -- python3 /share/test_truth.py /share/antifreeze
	$(VM) --user -- python3 /share/test_truth.py /share/antifreeze
	$(VM) --swap 512M -- python3 /share/vm_tiers.py /share/hold_driver
	$(VM) --swap 512M --user -- python3 /share/vm_tiers.py /share/hold_driver
	$(VM) --swap 512M -- python3 /share/test_run.py /share/antifreeze scope cgroup2
	$(VM) --swap 512M --user -- python3 /share/test_run.py /share/antifreeze scope none
	$(VM) --swap 512M -- python3 /share/test_hold.py /share/antifreeze scope cgroup2
	$(VM) --swap 512M --user -- python3 /share/test_hold.py /share/antifreeze scope none
	$(VM) --swap 512M -- python3 /share/vm_hold.py /share/antifreeze scope cgroup2
	$(VM) -- python3 /share/vm_hold.py /share/antifreeze scope cgroup2
	$(VM) --swap 512M --user -- python3 /share/vm_hold.py /share/antifreeze scope none
	$(VM) --user -- python3 /share/vm_hold.py /share/antifreeze scope none

.PHONY: test-cut
test-cut: all ## cut the power of a virtual machine 50 times while it records, and look at what is left (some 25 minutes; x86-64 Debian)
	@$(MESON) compile -C $(BUILD) flight_dump flight_thinner
	@/usr/bin/python3 -B tests/vm/cut $(BUILD)

VM := tests/vm/vm run --mem 1G --smp 2 --timeout 900 --share $(BUILD)/share
VM_TESTS := scenario.py test_truth.py test_run.py test_hold.py vm_hold.py vm_tiers.py

.PHONY: asan
asan: ## build and test with the address and undefined-behaviour sanitizers
	@tools/deps test
	@$(MAKE) --no-print-directory configure-asan
	@tools/run_tests.py $(BUILD)-asan

.PHONY: tsan
tsan: ## build and test what has threads with the thread sanitizer
	@tools/deps test
	@$(MAKE) --no-print-directory configure-tsan
	@tools/run_tests.py $(BUILD)-tsan

.PHONY: fuzz
fuzz: ## fuzz every parser for a long time (FUZZ_INPUTS in all) and count
	@tools/deps fuzz
	@$(MAKE) --no-print-directory configure-fuzz
	@tools/run_fuzz.py $(BUILD)-fuzz $(FUZZ_INPUTS)

.PHONY: stress
stress: all ## start, stop and kill runs by the thousand, and count what is left behind (some 20 minutes)
	@/usr/bin/python3 -B tests/stress_run.py $(BUILD)/antifreeze --trainer $(BUILD)/demo/afz-trainer

.PHONY: stress-probe
stress-probe: all ## allocate in 8 processes of 16 threads that fork, with the real probe and under the thread sanitizer (some 20 minutes)
	@$(MESON) compile -C $(BUILD) probe_keeper probe_program antifreeze-probe
	@$(MAKE) --no-print-directory configure-tsan
	@$(MESON) compile -C $(BUILD)-tsan test_probe_stress
	@/usr/bin/python3 -B tests/probe_stress.py $(BUILD) $(BUILD)-tsan

.PHONY: bench
bench: ## measure what Antifreeze itself costs
	@tools/deps bench
	@$(MAKE) --no-print-directory all
	@$(MESON) compile -C $(BUILD) bench-programs
	@bench/run $(BUILD)

.PHONY: bench-peers
bench-peers: all ## the probe's cost beside that of memray, heaptrack and Scalene, where they are installed (PEERS="--python ... --job torch")
	@$(MESON) compile -C $(BUILD) bench-programs
	@bench/peers.py $(BUILD) $(PEERS)

.PHONY: bench-adapt
bench-adapt: all ## batches three times too large: with --policy adapt, without us, and beside accelerate and Lightning (ADAPT="--rounds 1 --gpu")
	@bench/adapt.py $(BUILD) $(ADAPT)
	@bench/adapt_peers.py $(BUILD) $(ADAPT)

.PHONY: bench-feed
bench-feed: all ## antifreeze.Loader beside other loaders, 8 GB of data held to 2 GB of memory (FEED="--data FOLDER --rounds 1", or "--small")
	@bench/feed.py $(BUILD) $(FEED)

.PHONY: lines
lines: all ## run some hundred programs whose lines are known, and count the verdicts and lines that are right (some 40 minutes)
	@$(MESON) compile -C $(BUILD) antifreeze-probe
	@/usr/bin/python3 -B tests/lines/lines.py $(BUILD)/antifreeze --out $(BUILD)/lines.json --resume $(LINES)

.PHONY: zoo
zoo: ## run every pitfall of the seeds as a program, under both policies, and write docs/zoo.md (some 60 minutes, and 3 GB of frameworks)
	@tools/deps test
	@tools/deps zoo
	@$(MAKE) --no-print-directory lab-programs
	@$(MESON) compile -C $(BUILD) fake-nvml-now
	@tools/frameworks $(BUILD)-frameworks
	@AFZ_FRAMEWORKS_PYTHON=$(abspath $(BUILD))-frameworks/bin/python zoo/zoo $(BUILD) --out $(BUILD)/zoo.json --resume --page docs/zoo.md $(ZOO)

.PHONY: lab
lab: lab-programs ## run 12 telling cells of the freeze lab, three times each (some 45 minutes; x86-64 Debian)
	@lab/lab --build $(BUILD)

.PHONY: lab-full
lab-full: lab-programs ## the whole matrix of the freeze lab, once (some eight hours)
	@lab/lab --build $(BUILD) --full

.PHONY: lab-programs
lab-programs: all
	@$(MESON) compile -C $(BUILD) lab-programs

.PHONY: lint
lint: ## check format, scripts, layers, lengths and generated files
	@tools/deps lint
	@$(MAKE) --no-print-directory all
	@tools/lint.py $(BUILD)

.PHONY: format
format: ## put all C code into the format of .clang-format
	clang-format-14 -i $$(tools/lint.py --list-c)

.PHONY: install
install: all ## install under DESTDIR and PREFIX
	@DESTDIR=$(DESTDIR) $(MESON) install -C $(BUILD) --no-rebuild
	@cat $(BUILD)/installed.txt $(BUILD)/meson-logs/install-log.txt 2>/dev/null | sort -u >$(BUILD)/installed.new
	@mv $(BUILD)/installed.new $(BUILD)/installed.txt

.PHONY: uninstall
uninstall: ## remove what make install has put in place from this build folder
	@tools/uninstall $(BUILD)/installed.txt
	@rm -f $(BUILD)/installed.txt

.PHONY: deb
deb: ## make the Debian package, in build-packages
	@tools/deps deb
	@tools/deb $(PACKAGES)/deb $(PACKAGES)

.PHONY: wheel
wheel: ## make the wheel that has the program in it, in build-packages
	@tools/deps wheel
	@tools/configure $(PACKAGES)/wheel --libdir=lib -Doptimization=2 -Ddebug=false -Dtests=false
	@$(MESON) compile -C $(PACKAGES)/wheel
	@tools/wheel $(PACKAGES)/wheel $(PACKAGES)/wheel-tree $(PACKAGES)

.PHONY: test-packages
test-packages: deb wheel ## install package and wheel into a bare Debian and use them there (as root)
	@tools/deps test-packages
	@/usr/bin/python3 -B tests/packages.py $(PACKAGES)

.PHONY: test-newcomer
test-newcomer: ## clone what is committed into a bare Debian that has git and make alone, and follow the README there (as root; NEWCOMER="--no-test")
	@tools/deps test-newcomer
	@/usr/bin/python3 -B tests/newcomer.py $(BUILD)-newcomer $(NEWCOMER)

.PHONY: clean
clean: ## remove the build folders
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(PACKAGES) $(BUILD)-newcomer

.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: configure-asan configure-tsan configure-fuzz
configure-asan:
	@tools/configure $(BUILD)-asan $(ASAN)
configure-tsan:
	@tools/configure $(BUILD)-tsan $(TSAN)
configure-fuzz:
	@CC=$(CLANG) tools/configure $(BUILD)-fuzz $(FUZZ)
