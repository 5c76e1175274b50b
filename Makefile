# Every task of the project has a target here; `make` alone lists them.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
EXPORT_VENV := .venv-export
OPTIMUM_VENV := .venv-optimum
BENCH_VENV := .venv-bench
SAM_VENV := .venv-sam
SAM_VERSION := 1.170.0
MINISTACK_VENV := .venv-ministack
ARCHITECTURE ?= x86_64
# Layers are built for both, unless one was asked for.
ARCHITECTURES := $(if $(filter file,$(origin ARCHITECTURE)),x86_64 arm64,$(ARCHITECTURE))

STARTER := model_pack/starter
PACK ?= build/packs/starter-int8
MODEL ?= Helsinki-NLP/opus-mt-en-zh
export MARIAN_PACK = $(PACK)
export SAM_CLI_TELEMETRY = 0

# The starter packs are built on demand; any other folder must hold a pack already.
PACK_READY := $(if $(filter build/packs/starter-%,$(PACK)),$(PACK)/manifest.json,$(VENV)/run.stamp)

# A pack of opus-mt-en-zh's size, its weights random: what the layers' sizes are judged by.
OPUS_SIZE := build/packs/random-opus-mt-en-zh

LAYERS := build/layers$(if $(filter no,$(BYTECODE)),-no-bytecode)
RUNTIME_LAYERS := $(ARCHITECTURES:%=$(LAYERS)/runtime-%.zip)

# The text as it was typed: `$` in it is not make's.
export TRANSLATE_TEXT := $(value TEXT)

# What of a bulk job can be left out.
OUT ?= $(basename $(FILE)).translated$(suffix $(FILE))
BULK_OPTIONS = $(if $(JOB),--job "$(JOB)") $(if $(SOURCE),--source "$(SOURCE)") $(if $(TARGET),--target "$(TARGET)") $(if $(COLUMN),--column "$(COLUMN)")

BENCH_OPTIONS = $(if $(filter-out no,$(QUICK)),--quick)

# What decides a pack's bytes.
ENGINE := $(wildcard function/engine/*.py)
BUILDER := $(wildcard model_pack/*.py)
STARTER_FILES := $(wildcard $(STARTER)/*.json $(STARTER)/*.spm $(STARTER)/*.safetensors)

.DEFAULT_GOAL := help
.PHONY: help translate bulk test lint format pack invoke retouch emulator validate layers sizes sam-build deploy deploy-local sam-local image test-integration test-export test-optimum test-cpus test-chaos test-hostile model-pack references figures bench bench-cold clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

translate: $(PACK_READY) ## translate TEXT="...", FILE=path or standard input; PACK=folder for another model pack
	@$(RUN) -m local.translate $(if $(TRANSLATE_TEXT),-- "$$TRANSLATE_TEXT",$(if $(FILE),--file "$(FILE)"))

bulk: $(VENV)/bulk.stamp ## translate FILE=path through QUEUE_URL=url and BUCKET=name of a deployment, into OUT=path
	$(if $(and $(FILE),$(QUEUE_URL),$(BUCKET)),,$(error say what, and through what: make bulk FILE=path QUEUE_URL=url BUCKET=name))
	@job=$$($(RUN) -m bulk submit "$(FILE)" --queue-url "$(QUEUE_URL)" --bucket "$(BUCKET)" $(BULK_OPTIONS)) && \
	  $(RUN) -m bulk collect --job "$$job" --queue-url "$(QUEUE_URL)" --bucket "$(BUCKET)" --input "$(FILE)" --out "$(OUT)" --wait

test: $(VENV)/test.stamp $(MINISTACK_VENV)/stamp emulator ## run the tests
	$(RUN) -m pytest

lint: $(VENV)/test.stamp ## check style, format, types, insecure code and vulnerable packages
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	$(RUN) -m bandit --quiet --recursive --configfile pyproject.toml benchmarks bulk function layer local model_pack
	$(RUN) -m pip_audit --progress-spinner off --no-deps --disable-pip -r function/requirements.txt -r bulk/requirements.txt

format: $(VENV)/test.stamp ## put the code into the project's format
	$(RUN) -m ruff check --fix
	$(RUN) -m ruff format

pack: build/packs/starter-int8/manifest.json build/packs/starter-fp32/manifest.json ## build the starter model packs

build/packs/starter-%/manifest.json: $(VENV)/run.stamp $(ENGINE) $(BUILDER) $(STARTER_FILES)
	@$(RUN) -m model_pack build --checkpoint $(STARTER) --out $(@D) --precision $*

invoke: emulator $(PACK_READY) ## run EVENT=events/<name>.json through awslambdaric under the emulator
	@$(RUN) -m local.invoke "$(or $(EVENT),$(error say which event: make invoke EVENT=events/rest-api-translate.json))"

retouch: $(VENV)/run.stamp ## apply the stages after decoding to OUT=raw translations of SRC=file, to standard output
	$(if $(and $(SRC),$(filter command line,$(origin OUT))),,$(error say which files: make retouch SRC=file.en OUT=file.zh))
	@$(RUN) -m local.retouch --source "$(SRC)" --target "$(OUT)" $(if $(filter-out no,$(TRACE)),--trace)

emulator: build/emulator/$(SAM_VERSION).stamp ## fetch AWS's Runtime Interface Emulator

# The emulator ships inside AWS SAM; nothing else of that package is needed to run it.
build/emulator/$(SAM_VERSION).stamp: | $(VENV)/run.stamp
	@rm -rf build/emulator
	@$(RUN) -m pip install --quiet --no-deps --target build/emulator aws-sam-cli==$(SAM_VERSION)
	@chmod +x build/emulator/samcli/local/rapid/aws-lambda-rie-*
	@touch $@

validate: $(SAM_VENV)/stamp ## check template.yaml with sam validate --lint
	$(SAM_VENV)/bin/sam validate --lint --region us-east-1 

layers: $(RUNTIME_LAYERS) $(PACK_READY) ## build and zip the layers; ARCHITECTURE=arm64 for one, BYTECODE=no without Python 3.13
	@$(RUN) -m layer model --pack $(PACK) --out $(LAYERS)/model --zip $(LAYERS)/model.zip

$(LAYERS)/runtime-%.zip: layer/requirements.txt $(wildcard layer/*.py) | $(VENV)/bin/python
	@$(RUN) -m layer runtime --architecture $* --out $(basename $@) --zip $@ $(if $(filter no,$(BYTECODE)),--no-bytecode)

sizes: $(RUNTIME_LAYERS) $(OPUS_SIZE)/manifest.json ## weigh the function and its layers, with a model of opus-mt-en-zh's size
	@$(RUN) -m layer sizes $(foreach architecture,$(ARCHITECTURES),--runtime $(architecture)=$(LAYERS)/runtime-$(architecture)) --pack $(OPUS_SIZE)

$(OPUS_SIZE)/manifest.json: $(VENV)/run.stamp $(ENGINE) $(BUILDER)
	@rm -rf $(OPUS_SIZE)-checkpoint
	@$(RUN) -m model_pack random --like opus-mt-en-zh --out $(OPUS_SIZE)-checkpoint
	@$(RUN) -m model_pack build --checkpoint $(OPUS_SIZE)-checkpoint --out $(@D)
	@rm -r $(OPUS_SIZE)-checkpoint

sam-build: $(SAM_VENV)/stamp $(PACK_READY) ## build what `sam deploy` uploads: functions and layers
	MARIAN_PACK=$(abspath $(PACK)) ARCHITECTURE=$(ARCHITECTURE) PYTHON=$(abspath $(RUN)) BYTECODE=$(BYTECODE) \
	  $(SAM_VENV)/bin/sam build --parameter-overrides Architecture=$(ARCHITECTURE) --build-dir build/sam

deploy: sam-build ## deploy to AWS: sam asks for the parameters, and keeps the answers in samconfig.toml
	$(SAM_VENV)/bin/sam deploy --guided --template build/sam/template.yaml --config-file $(abspath samconfig.toml)

# What runs on this machine is built for its processor.
deploy-local sam-local test-integration: ARCHITECTURE := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86_64)

deploy-local: $(VENV)/test.stamp $(MINISTACK_VENV)/stamp emulator sam-build ## deploy to an AWS emulated here, and use it (needs Docker); STAY=yes to leave it running
	@$(RUN) -m local.cloud $(if $(STAY),--stay)

sam-local: $(VENV)/run.stamp emulator sam-build ## run every event and an API with sam local (needs Docker)
	@$(RUN) -m local.sam

image: layers ## build the container image, for Lambda and for workers (needs Docker)
	docker build --build-arg ARCHITECTURE=$(ARCHITECTURE) --tag marian-lambda .

test-integration: $(VENV)/test.stamp $(MINISTACK_VENV)/stamp emulator sam-build layers ## test with sam local and an emulated AWS (needs Docker)
	$(RUN) -m pytest -rs tests/integration

test-export: $(EXPORT_VENV)/stamp ## compare with transformers and torch, live
	$(EXPORT_VENV)/bin/python -m pytest tests/export

test-optimum: $(OPTIMUM_VENV)/stamp $(EXPORT_VENV)/stamp ## export the starter with optimum and verify it against transformers
	$(OPTIMUM_VENV)/bin/python -m model_pack export --via optimum --checkpoint $(STARTER) --out build/exports/starter-optimum
	$(EXPORT_VENV)/bin/python -m model_pack verify --checkpoint $(STARTER) --optimum build/exports/starter-optimum

test-cpus: $(VENV)/test.stamp ## compare processors (emulated: x86 without VNNI, arm64) and 2,000 sentences alone and in batches (needs qemu-user)
	EVERY_NTH_SENTENCE=1 $(RUN) -m pytest tests/cpus tests/test_same_answer.py

test-chaos: $(VENV)/test.stamp $(MINISTACK_VENV)/stamp ## 10,000 messages while workers die and storage is slow
	$(RUN) -m pytest -s tests/chaos

test-hostile: $(VENV)/test.stamp ## 20,000 malformed events and records each, and memory over 5,000 requests
	$(RUN) -m pytest -s tests/hostile

model-pack: $(EXPORT_VENV)/stamp ## MODEL=id on a hub or CHECKPOINT=folder -> verified pack and report in build/models
	$(EXPORT_VENV)/bin/python -m model_pack pack $(if $(CHECKPOINT),--checkpoint "$(CHECKPOINT)",--model "$(MODEL)") $(if $(REVISION),--revision "$(REVISION)")

references: $(EXPORT_VENV)/stamp ## recompute the references in tests/references with transformers
	$(EXPORT_VENV)/bin/python -m tests.export.references

figures: $(VENV)/test.stamp pack ## measure, and rewrite the figures in README.md
	$(RUN) -m benchmarks.figures

bench: $(VENV)/run.stamp $(BENCH_VENV)/stamp ## measure speed, memory and size beside other systems, into build/bench; QUICK=yes for a first look
	@$(RUN) -m benchmarks.bench $(BENCH_OPTIONS)

bench-cold: $(VENV)/run.stamp $(BENCH_VENV)/stamp ## measure process start to first translation beside other systems; QUICK=yes for a first look
	@$(RUN) -m benchmarks.cold $(BENCH_OPTIONS)

clean: ## remove build products and environments
	rm -rf build $(VENV) $(EXPORT_VENV) $(OPTIMUM_VENV) $(BENCH_VENV) $(SAM_VENV) $(MINISTACK_VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.13 ...")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: model_pack/requirements.txt local/requirements.txt function/requirements.txt | $(VENV)/bin/python
	@echo "Setting up $(VENV)" >&2
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r model_pack/requirements.txt -r local/requirements.txt
	@touch $@

$(VENV)/bulk.stamp: bulk/requirements.txt | $(VENV)/bin/python
	@echo "Setting up $(VENV)" >&2
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r bulk/requirements.txt
	@touch $@

$(VENV)/test.stamp: tests/requirements.txt bulk/requirements.txt $(VENV)/run.stamp
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@

$(EXPORT_VENV)/stamp: tests/export/requirements.txt model_pack/requirements.txt function/requirements.txt
	$(PYTHON) -m venv $(EXPORT_VENV)
	$(EXPORT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/export/requirements.txt
	touch $@

$(OPTIMUM_VENV)/stamp: model_pack/optimum-requirements.txt
	$(PYTHON) -m venv $(OPTIMUM_VENV)
	$(OPTIMUM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r model_pack/optimum-requirements.txt
	touch $@

$(BENCH_VENV)/stamp: benchmarks/requirements.txt model_pack/optimum-requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	touch $@

$(SAM_VENV)/stamp: Makefile
	$(PYTHON) -m venv $(SAM_VENV)
	$(SAM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check aws-sam-cli==$(SAM_VERSION)
	touch $@

# An environment of its own: ministack wants an older botocore than the bulk client.
$(MINISTACK_VENV)/stamp: tests/ministack-requirements.txt
	@$(PYTHON) -m venv $(MINISTACK_VENV)
	@$(MINISTACK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/ministack-requirements.txt
	@touch $@
