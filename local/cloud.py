"""The whole service on this machine, without an account: `sam deploy` of template.yaml to an emulated AWS.

ministack emulates API Gateway, Lambda, SQS, S3, IAM, CloudFormation and more, and runs the functions in containers.
It can run them without, but then their layers are not in /opt, where the template has the model pack, and neither
awslambdaric nor Lambda's Python runs them. What the functions ask of S3 is held against their roles; what Lambda
does on their behalf, such as taking messages and writing logs, is not.

What ministack leaves out: the gateway's own words (its errors keep AWS's usual shape, preflights lack CORS headers),
tracing, alarms that ring, batches of more than ten records.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from local.docker import DockerError, Engine, docker_engine
from local.emulator import ARCHITECTURE, EmulatorError
from local.processes import answers_in_time, clean_up_at_sigterm, free_port, running
from local.sam import FIELDS, SamError, sam_command
from local.web import Answer, send, send_json

ROOT = Path(__file__).parent.parent
LOG = ROOT / "build" / "ministack.log"

_PYTHON = ROOT / ".venv-ministack" / "bin" / "python"
_REGION = "us-east-1"
_STACK = "marian-local"
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}  # the emulated account's root

_START_SECONDS = 30.0
_BULK_SECONDS = 120

# What a machine with few processors can take: each instance of a function is a container.
SMALL = {"MaximumConcurrency": "2"}


class CloudError(Exception):
    """The emulated AWS does not start, does not take the template, or does not do what it should."""


@dataclass(frozen=True)
class Cloud:
    """An emulated AWS that runs."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment, with this cloud in the place of any real one."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {
            **ours,
            **_CREDENTIALS,
            "AWS_REGION": _REGION,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "SAM_CLI_TELEMETRY": "0",
        }

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name=_REGION,
            endpoint_url=self.url,
            aws_access_key_id=_CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=_CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )


@dataclass(frozen=True)
class Deployment:
    """The service, deployed."""

    cloud: Cloud
    outputs: Mapping[str, str]  # of template.yaml
    api_url: str  # where its API is on this machine
    api_key: str | None  # where Auth asks for one

    @property
    def key_header(self) -> dict[str, str]:
        return {"x-api-key": self.api_key} if self.api_key else {}

    def get(self, path: str) -> Answer:
        return send(self.api_url + path, headers=self.key_header)

    def translate(self, fields: Mapping[str, Any]) -> Answer:
        return send_json(f"{self.api_url}/translate", fields, self.key_header)


@contextmanager
def local_cloud(engine: Engine) -> Iterator[Cloud]:
    """Run the emulated AWS, and its functions in the engine's containers.

    Raises:
        CloudError: it is not installed, or does not start.
    """
    if not _PYTHON.is_file():
        raise CloudError(f"{_PYTHON} is missing: `make deploy-local` installs it.")
    port = free_port()
    cloud = Cloud(f"http://127.0.0.1:{port}")
    # Clients come over loopback and containers over their bridge; from outside of this machine nobody comes.
    addresses = ["127.0.0.1", *([engine.gateway] if engine.gateway else [])]
    bindings = [argument for address in addresses for argument in ("--bind", f"{address}:{port}")]
    with tempfile.TemporaryDirectory(prefix="marian-cloud-", ignore_cleanup_errors=True) as folder:
        variables = {
            **{name: value for name, value in cloud.environment.items() if name != "AWS_ENDPOINT_URL"},
            **engine.environment,
            "AUTH": "true",
            "GATEWAY_PORT": str(port),
            "LAMBDA_EXECUTOR": "docker",
            "LAMBDA_STRICT": "1",  # in containers or not at all
            "TMPDIR": folder,
        }
        command = [str(_PYTHON), "-m", "hypercorn", "ministack.app:app", *bindings]
        with running(command, environment=variables, folder=Path(folder), log=LOG) as process:
            if not answers_in_time(
                process, lambda: send(f"{cloud.url}/_ministack/health").status == 200, _START_SECONDS
            ):
                raise CloudError(f"ministack did not start (exit status {process.poll()}); {LOG} has the reason.")
            yield cloud


def deploy(cloud: Cloud, parameters: Mapping[str, str] | None = None) -> Deployment:
    """Deploy what `make sam-build` built with `sam deploy`, or deploy it again with other parameters.

    Args:
        parameters: of template.yaml, where its defaults are not meant.

    Raises:
        SamError: nothing is built.
        CloudError: the deployment fails.
    """
    overrides = {"Architecture": ARCHITECTURE, **(parameters or {})}
    command = [
        *sam_command("deploy", "--stack-name", _STACK, "--region", _REGION, "--resolve-s3"),
        *("--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-fail-on-empty-changeset"),
        *("--no-progressbar", "--parameter-overrides", *(f"{name}={value}" for name, value in overrides.items())),
    ]
    done = subprocess.run(command, env=cloud.environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CloudError(f"sam deploy failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    stack = cloud.client("cloudformation").describe_stacks(StackName=_STACK)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    _adapt(cloud, outputs["ResultsBucket"])
    api = re.match(r"https://([^.]+)\.execute-api\.[^/]+/(.+)", outputs["ApiUrl"])
    if api is None:
        raise CloudError(f"the output ApiUrl is no URL of API Gateway: {outputs['ApiUrl']}")
    key = _api_key(cloud, outputs["ApiKeyId"]) if "ApiKeyId" in outputs else None
    return Deployment(cloud, outputs, f"{cloud.url}/_aws/execute-api/{api[1]}/{api[2]}", key)


def _adapt(cloud: Cloud, bucket: str) -> None:
    """Undo what cannot work here."""
    # The bucket's policy refuses what comes without TLS, and here nothing comes with it.
    cloud.client("s3").delete_bucket_policy(Bucket=bucket)
    # Parameters are text, and ministack leaves MaximumConcurrency so: its poller then fails on it.
    functions = cloud.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        maximum = int(mapping["ScalingConfig"]["MaximumConcurrency"])
        functions.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": maximum})


def _api_key(cloud: Cloud, id_: str) -> str:
    return str(cloud.client("apigateway").get_api_key(apiKey=id_, includeValue=True)["value"])


def bulk(deployment: Deployment, *arguments: str) -> None:
    """Run the bulk client on the deployment.

    Raises:
        CloudError: it fails, or does not end.
    """
    command = [sys.executable, "-m", "bulk", *arguments]
    try:
        done = subprocess.run(command, env=deployment.cloud.environment, cwd=ROOT, timeout=_BULK_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise CloudError(f"bulk {arguments[0]} did not end within {_BULK_SECONDS} s; {LOG} may say why.") from error
    if done.returncode != 0:
        raise CloudError(f"bulk {arguments[0]} failed with exit status {done.returncode}.")


# --------------------------------------------------------------------------------- what `make deploy-local` shows


def show(deployment: Deployment) -> None:
    """Call the API, run a bulk job, and print what comes back.

    Raises:
        CloudError: it is not what should come back.
    """
    print(f"\nPOST {deployment.api_url}/translate: {_json(FIELDS)}")
    for start in ("cold", "warm"):
        answer = deployment.translate(FIELDS)
        print(f"  {answer.status} after {answer.seconds:.2f} s, {start}: {_json(answer.content)}", flush=True)
        if answer.status != 200:
            raise CloudError("the API did not translate.")
    refused = send_json(f"{deployment.api_url}/translate", FIELDS)
    print(f"  {refused.status} without an API key: {_json(refused.content)}")
    if refused.status != 403:
        raise CloudError("the API takes calls without a key.")
    with tempfile.TemporaryDirectory() as folder:
        _show_bulk(deployment, Path(folder))


def _show_bulk(deployment: Deployment, folder: Path) -> None:
    source, target = folder / "source.txt", folder / "target.txt"
    source.write_text("Good morning.\nWhere is the station?\nThe weather today is quite nice.\n" * 20, "utf-8")
    job = ("--bucket", deployment.outputs["ResultsBucket"], "--job", "sample")
    queue = ("--queue-url", deployment.outputs["QueueUrl"])
    started = time.monotonic()
    for step in (
        ("submit", str(source), *queue, *job, "--chunk-segments", "10"),
        ("collect", *job, "--out", str(target), "--wait", "0.5"),
        ("status", *job, *queue),
    ):
        print(f"\npython -m bulk {' '.join(step)}", flush=True)
        bulk(deployment, *step)
    lines = target.read_text("utf-8").splitlines()
    print(f"\n{len(lines)} lines after {time.monotonic() - started:.1f} s: {' '.join(lines[:3])} ...")
    if len(lines) != 60 or not all(lines):
        raise CloudError("the bulk job did not translate every line.")


def _stay(deployment: Deployment) -> None:
    print("\nIt runs until Ctrl-C. AWS's tools find it with")
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", *_CREDENTIALS):
        print(f"  export {name}={deployment.cloud.environment[name]}")
    headers = "".join(f" -H '{name}: {value}'" for name, value in deployment.key_header.items())
    print(f"and curl with\n  curl{headers} -d '{_json(FIELDS)}' {deployment.api_url}/translate", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print()


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local.cloud",
        description="Deploy the service to an emulated AWS on this machine, use it, and take it down again.",
    )
    parser.add_argument("--stay", action="store_true", help="leave it running until Ctrl-C")
    arguments = parser.parse_args()
    clean_up_at_sigterm()
    try:
        with docker_engine() as engine, local_cloud(engine) as cloud:
            started = time.monotonic()
            print("sam deploy", flush=True)
            deployment = deploy(cloud, SMALL)
            print(f"  deployed after {time.monotonic() - started:.0f} s")
            for name, value in deployment.outputs.items():
                print(f"  {name}: {value}")
            show(deployment)
            if arguments.stay:
                _stay(deployment)
    except CloudError as error:
        print(error, file=sys.stderr)
        return 1
    except (DockerError, EmulatorError, SamError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
