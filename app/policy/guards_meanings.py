"""What each reason code of the guards means, in one line: all that code can't say of itself.

`app.policy.guards_doc` fails when a reason has no line here, or a line has no reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import loop_guards as guards

Meanings: TypeAlias = Mapping[type[StrEnum], Mapping[str, str]]

MEANINGS: Meanings = {
    guards.HandoffReason: {
        "not_merged": "The pull request was not merged; only a merge hands off.",
        "already_handed_off": "A task covers the finding, or covered it and no order came since.",
        "not_open": "It is fixed, gone from the merged tree, or dismissed after the last order.",
        "stopped": "A person stopped the lineage, or the kill switch is on; asked again at resume.",
        "human_queue": "A person ordered it. Nothing of the automatic plan is asked.",
        "escalated": "The task that covers it waits for a person; asked again at resume.",
        "post_merge": "It was first seen after the merge: for such a finding an order is needed.",
        "mode_off": "The policy has `handoff.mode: off`: only an order hands off.",
        "mode_manual": "The policy has `handoff.mode: manual`: only an order hands off.",
        "verify_run": "A verify run of a fixer found it; that is its task's own matter.",
        "bot_pull_request": "A bot wrote the pull request, or it is a fix itself.",
        "acknowledged": "A person with write access accepted it as it is.",
        "pre_existing": "It lies in code that the pull request did not touch.",
        "no_path": "It names no file, so there is nothing a task could lease.",
        "other_base": "The base is neither the default branch nor in `handoff.bases`.",
        "below_severity": "It is milder than `handoff.minimum_severity`.",
        "budget": "No room: `max_fix_tasks` of the merge, `path_tasks` of the file, or the purse.",
        "auto": "Nothing spoke against it: the merge hands it off by itself.",
    },
    guards.ConvergenceReason: {
        "findings_block": "A finding of the task, or a critical of the fix itself, is still open.",
        "coverage": "Nothing blocks in what was looked at, but that was not everything.",
        "nothing_blocks": "Everything was looked at and nothing blocks. The rest is recorded.",
    },
    guards.FixedReason: {
        "not_claimed": "No reviewer says that it is fixed.",
        "no_change": "It is said to be fixed, but nothing changed where it could have been.",
        "on_evidence": "It is said to be fixed, and its files or the cited hunk changed.",
    },
    guards.ReturnReason: {
        "not_blocking": "It never blocked, so its return stops nothing.",
        "bounce": "A bot changed that place since it was fixed: the bot broke it again.",
        "unstable_review": "It came back without a change once too often: the reviewer wavers.",
        "flip": "It came back without a change: the reviewer changed its mind, counted once.",
    },
    guards.StartReason: {
        "stopped": "A person stopped the lineage. It goes on after a resume.",
        "kill_switch": "All automation is switched off.",
        "escalated": "The task waits for a person.",
        "cap": "The task has used its allowance: the first rounds and those of its resumes.",
        "budget": "The purse of the lineage is empty, or the worst case does not fit into it.",
        "allowed": "Nothing spoke against it.",
    },
    guards.NextReason: {
        "stopped": "A person stopped the lineage: nothing follows until a resume.",
        "nothing_blocks": "The whole of it was looked at, and nothing blocks.",
        "coverage": "Too many rounds in a row could not look at everything.",
        "unavailable": "No model could be asked, so the round says nothing.",
        "budget": "The purse of the lineage is empty.",
        "bounce": "A finding that was fixed is back, and a bot had changed that place.",
        "unstable_review": "The reviewer changed its mind about a finding once too often.",
        "stall": "No progress: the same findings block, no file of them changed, or a known patch.",
        "cap": "The task has used its allowance of rounds.",
        "findings_block": "Findings block, and the task may go on: the fixer's turn.",
        "look_again": "What there is now was not wholly looked at, so no turn has work yet.",
    },
    guards.VerifyReason: {
        "stopped": "A person stopped the lineage.",
        "kill_switch": "All automation is switched off.",
        "no_live_task": "The call names no task, or one that is over.",
        "escalated": "The task waits for a person.",
        "cycles": "The task has used its verify cycles.",
        "allowed": "Nothing spoke against it.",
    },
    guards.ReviewReason: {
        "own_act": "We did ourselves what asks for the review.",
        "closed": "The pull request is not open.",
        "superseded": "There is a newer head; that one is reviewed.",
        "stopped": "A person stopped the lineage.",
        "kill_switch": "All automation is switched off.",
        "escalated": "The task of this fix waits for a person.",
        "draft": "It is a draft.",
        "skip_label": "It has the label `mergeward:skip`.",
        "ignored": "The policy leaves it out.",
        "already_reviewed": "This head was reviewed with this base and policy.",
        "same_patch": "Only the base was merged into it: the verdict is carried over.",
        "ping_pong": "Machines have caused too many rounds in a row; an act of a person ends that.",
        "bot_pull_requests": "Too many pull requests of outside bots in the day or the window.",
        "requested": "Nothing spoke against it.",
    },
    guards.ThreadReason: {
        "fixed": "Its finding is fixed on evidence.",
        "replies_used": "A person disagrees, and we have answered as often as we may.",
        "human_disagrees": "A person disagrees and has no answer yet.",
        "still_there": "Nothing new: the finding is still there.",
    },
    guards.RubricReason: {
        "nothing": "Nothing was found, or trivial suggestions only.",
        "suggestions": "Suggestions only.",
        "some_warnings": "Warnings, and neither a pattern nor a risk to production.",
        "risk_pattern": "Several warnings, or some in one category or file.",
        "critical": "At least one critical finding.",
        "production_risk": "A finding names a failure in production that it foresees.",
        "coverage": "Not everything was looked at: no approval, whatever the verdict's word is.",
    },
    guards.ActorReason: {
        "posted_by_us": "The act has an id that we posted.",
        "not_a_user": "The account is not of type User.",
        "machine_account": "The policy lists the account in `machine_accounts`, or we know it.",
        "through_app": "An App acted in the account's name.",
        "person": "Nothing says that a machine acted.",
    },
    guards.OrderReason: {
        "not_human": "A machine gave it.",
        "no_write_access": "The person may not write to the repository.",
        "not_merged": "The pull request was closed without a merge.",
        "not_open": "The finding is fixed or gone.",
        "live_task": "A task works on it already.",
        "already_queued": "An earlier order for it waits.",
        "stopped": "The lineage is stopped or the kill switch is on: the order waits.",
        "task_escalated": "Its task waits for a person: this order is that person's resume.",
        "waits_for_merge": "It is kept until the pull request is merged.",
        "merged": "It becomes a task now.",
    },
    guards.UnqueueReason: {
        "not_human": "A machine asked for it.",
        "no_write_access": "The person may not write to the repository.",
        "order_pending": "The order that waits ends as withdrawn.",
        "last_of_task": "It was the last finding of its live task.",
        "of_live_task": "Its live task goes on without it.",
        "not_queued": "There is no order that waits and no live task.",
    },
    guards.DismissalReason: {
        "not_human": "A machine asked for it.",
        "no_write_access": "The person may not write to the repository.",
        "not_open": "The finding is fixed or gone.",
        "already_dismissed": "It is dismissed, and no order came since.",
        "own_critical": "Behind a gate, authors can't waive a critical of their own.",
        "by_human": "The person's word counts.",
    },
    guards.StopReason: {
        "not_human": "A machine asked for it.",
        "no_write_access": "The person may not write to the repository.",
        "already_stopped": "The lineage is stopped already.",
        "by_human": "The lineage is stopped until a person resumes it.",
    },
    guards.ResumeReason: {
        "not_human": "A machine asked for it.",
        "no_write_access": "The person may not write to the repository.",
        "kill_switch": "All automation is switched off: nothing could go on.",
        "task_escalated": "The escalation is over; the task has rounds again.",
        "stopped": "Only the stop of the lineage is lifted.",
        "deferred": "What waited for the kill switch to go off is asked about again.",
        "already_resumed": "That escalation was resumed before, or the task waits for nobody.",
        "not_stopped": "There is nothing to resume.",
    },
    guards.TaskReason: {
        "lease_taken": "Its files are free and its own from now on.",
        "lease_held": "Another task holds one of its files.",
        "turn_begun": "The target works.",
        "turn_done": "The target says done; a round follows.",
        "nothing_changed": "The turn changed nothing.",
        "turn_failed": "The turn broke down for good.",
        "silent": "A deadline passed without a word of the target.",
        "nothing_left": "Nothing of it is left to fix.",
        "withdrawn": "People took its last finding off before anything was proposed.",
        "round_begun": "A round made its first model call.",
        "approved": "The fix may be merged.",
        "turn_wanted": "Findings block: the target has another turn.",
        "round_wanted": "The last look was not whole: another one follows.",
        "escalated": "A guard gave it to a person; the decision before says which.",
        "stopped": "A person stopped the lineage.",
        "fix_merged": "Its fix pull request was merged.",
        "closed_by_human": "A person closed its fix pull request.",
        "closed_by_machine": "A machine closed its fix pull request.",
        "reopened_by_machine": "A machine reopened what a person had closed: that is no resume.",
        "resumed": "A person resumed it, or reopened its fix pull request: it has rounds again.",
        "task_over": "The task is over; nothing brings it back.",
        "superseded": "Another live task has one of its findings by now.",
        "not_now": "The event means nothing in this state: late, doubled or out of turn.",
    },
}

CLOSING: Mapping[str, str] = {
    "not_merged": "It was closed without a merge: orders given before that end as discarded.",
    "reopened": "The forge says that it is open again: its orders are kept.",
}
"""The reasons of `plan_unmerged`, which are no enumeration."""

FIXED_LIMITS: Mapping[str, str] = {
    "path_window": "The window of `path_tasks`.",
    "max_bot_prs_per_day": "Pull requests of outside bots that are reviewed a day.",
    "verify_cycles": "Reviews of its own diff that the fixer of one task may ask for.",
    "model_calls_per_session": "Model calls of one agent session.",
    "risk_pattern_warnings": "So many warnings are a pattern wherever they are.",
    "risk_pattern_same_place": "So many warnings of one category or in one file are a pattern.",
    "stall_turns": "Turns in a row that leave the same findings blocking.",
    "max_also_files": "Files that one finding may name besides its own.",
    "coverage_attempts": "Rounds in a row below full coverage before a person is asked.",
    "max_flips": "The return of one finding without a change that is one too many.",
    "bot_prs_per_window": "Pull requests of outside bots that are reviewed in `bot_pr_window`.",
    "bot_pr_window": "The window of `bot_prs_per_window`.",
    "thread_replies": "Our answers in one thread.",
    "max_reviewers": "Reviewers of the largest tier.",
    "sessions_per_agent": "Sessions that one agent may need in one round or turn.",
}
"""The constants that no policy sets; those that one sets are described with its keys."""
