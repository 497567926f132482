"""GenerateRequest messages to generations and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from google.protobuf.message import Message
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.shared.stream.generation import (
    CacheControl,
    Constraint,
    ConstraintKind,
    Generation,
    Output,
    PriorityClass,
    QualityOfService,
    RoutingHints,
    Sampling,
    Stopping,
)

_CONSTRAINTS = {
    "json_schema": ConstraintKind.JSON_SCHEMA,
    "regex": ConstraintKind.REGEX,
    "grammar": ConstraintKind.GRAMMAR,
}


def generation_from(request: pb.GenerateRequest) -> Generation:
    """Reads a request; raises InvalidRequest naming field, limit and value."""
    return Generation(
        request_id=request.request_id,
        model=request.model,
        prompt_ids=list(request.prompt_ids),
        generated_ids=list(request.generated_ids),
        sampling=_sampling_from(request.sampling),
        stopping=_stopping_from(request.stopping),
        output=Output(
            logprobs=_set(request.output, "logprobs"),
            prompt_logprobs=_set(request.output, "prompt_logprobs"),
        ),
        constraint=_constraint_from(request.constraint),
        quality_of_service=_quality_from(request.quality_of_service),
        cache=CacheControl(
            salt=request.cache.salt,
            read=not request.cache.no_read,
            write=not request.cache.no_write,
            pinned_tokens=request.cache.pinned_tokens,
        ),
        routing=RoutingHints(
            session_key=_set(request.routing, "session_key"),
            prefill_peer=_set(request.routing, "prefill_peer"),
            model_version=_set(request.routing, "model_version"),
            prefill_computes=request.routing.prefill_computes,
        ),
    )


def owned(generation: Generation, tenant: str | None) -> Generation:
    """The generation as that of the tenant, of no weight of its own; None leaves it to itself."""
    if tenant is None:
        return generation
    quality = replace(generation.quality_of_service, tenant=tenant, weight=None)
    return replace(generation, quality_of_service=quality)


def request_of(generation: Generation) -> pb.GenerateRequest:
    """The message of a generation."""
    return pb.GenerateRequest(
        request_id=generation.request_id,
        model=generation.model,
        prompt_ids=generation.prompt_ids,
        generated_ids=generation.generated_ids,
        sampling=_sampling_of(generation.sampling),
        stopping=types.Stopping(
            max_tokens=generation.stopping.max_tokens,
            min_tokens=generation.stopping.min_tokens or None,
            stop_token_ids=generation.stopping.stop_token_ids,
            ignore_eos=generation.stopping.ignore_eos,
        ),
        output=types.Output(
            logprobs=generation.output.logprobs, prompt_logprobs=generation.output.prompt_logprobs
        ),
        constraint=_constraint_of(generation.constraint),
        quality_of_service=types.QualityOfService(
            priority_class=types.PriorityClass.ValueType(
                generation.quality_of_service.priority_class
            ),
            tenant=generation.quality_of_service.tenant,
            timeout_ms=generation.quality_of_service.timeout_ms,
            weight=generation.quality_of_service.weight,
        ),
        cache=types.CacheControl(
            salt=generation.cache.salt,
            no_read=not generation.cache.read,
            no_write=not generation.cache.write,
            pinned_tokens=generation.cache.pinned_tokens,
        ),
        routing=types.RoutingHints(
            session_key=generation.routing.session_key,
            prefill_peer=generation.routing.prefill_peer,
            model_version=generation.routing.model_version,
            prefill_computes=generation.routing.prefill_computes,
        ),
    )


def _sampling_from(sampling: types.Sampling) -> Sampling:
    return Sampling(
        temperature=sampling.temperature if sampling.HasField("temperature") else 1.0,
        top_p=_set(sampling, "top_p"),
        top_k=_set(sampling, "top_k"),
        min_p=_set(sampling, "min_p"),
        presence_penalty=sampling.presence_penalty,
        frequency_penalty=sampling.frequency_penalty,
        repetition_penalty=(
            sampling.repetition_penalty if sampling.HasField("repetition_penalty") else 1.0
        ),
        logit_bias=tuple((entry.token_id, entry.bias) for entry in sampling.logit_bias),
        seed=_set(sampling, "seed"),
    )


def _sampling_of(sampling: Sampling) -> types.Sampling:
    return types.Sampling(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        presence_penalty=sampling.presence_penalty or None,
        frequency_penalty=sampling.frequency_penalty or None,
        repetition_penalty=sampling.repetition_penalty,
        logit_bias=[
            types.LogitBias(token_id=token_id, bias=bias) for token_id, bias in sampling.logit_bias
        ],
        seed=sampling.seed,
    )


def _stopping_from(stopping: types.Stopping) -> Stopping:
    return Stopping(
        max_tokens=_set(stopping, "max_tokens"),
        min_tokens=stopping.min_tokens,
        stop_token_ids=tuple(stopping.stop_token_ids),
        ignore_eos=stopping.ignore_eos,
    )


def _constraint_from(constraint: types.Constraint) -> Constraint | None:
    kind = constraint.WhichOneof("kind")
    return Constraint(_CONSTRAINTS[kind], getattr(constraint, kind)) if kind else None


def _constraint_of(constraint: Constraint | None) -> types.Constraint | None:
    if constraint is None:
        return None
    message = types.Constraint()
    setattr(message, constraint.kind.name.lower(), constraint.source)
    return message


def _quality_from(quality: types.QualityOfService) -> QualityOfService:
    batch = quality.priority_class == types.PRIORITY_CLASS_BATCH
    return QualityOfService(
        priority_class=PriorityClass.BATCH if batch else PriorityClass.INTERACTIVE,
        tenant=_set(quality, "tenant"),
        timeout_ms=_set(quality, "timeout_ms"),
        weight=_set(quality, "weight"),
    )


def _set(message: Message, name: str) -> Any:
    """An optional field's value, or None when it is unset."""
    return getattr(message, name) if message.HasField(name) else None
