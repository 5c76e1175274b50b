# A small image of the function: a Lambda container image as it is (CMD chooses the handler), and a worker
# for any host with another entry point:
#   docker run --entrypoint python3 IMAGE -m function.queue_worker --queue-url URL
ARG BASE=public.ecr.aws/lambda/python:3.13
FROM ${BASE}
COPY build/layers/runtime-x86_64/python/ /var/task/
COPY build/layers/model/model/ /opt/model/
COPY function/ /var/task/function/
CMD ["function.http_handler.handler"]
