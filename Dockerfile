# A small image of the function, from what `make layers` has built: a Lambda container image as it is (the command
# chooses the handler), and a worker for any host with another entry point:
#   docker run --entrypoint python3 IMAGE -m function.queue_worker --queue-url URL
ARG BASE=public.ecr.aws/lambda/python:3.13
FROM ${BASE}
ARG ARCHITECTURE=x86_64
COPY build/layers/runtime-${ARCHITECTURE}/python/ /opt/python/
COPY build/layers/model/model/ /opt/model/
COPY function/ /var/task/function/
ENV MALLOC_ARENA_MAX=1 OPENBLAS_NUM_THREADS=1
CMD ["function.http_handler.handler"]
