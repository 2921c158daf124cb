"""Which words are not for everybody (app/agents/language.py)."""

from __future__ import annotations

import pytest

from app.agents.language import is_other_language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("The term reaches the SQL text.", False, id="english"),
        pytest.param("Leak.", False, id="one-word"),
        pytest.param("这里缺少对返回值的检查。", True, id="chinese"),
        pytest.param("这里 `return_value_of_the_call` 没有检查。", True, id="chinese-with-code"),
        pytest.param("Здесь нет проверки результата.", True, id="russian"),
        pytest.param("هنا لا يتم التحقق من القيمة.", True, id="arabic"),
        pytest.param(
            "Hier fehlt die Prüfung des Rückgabewerts, und der Dienst stürzt ab.", True, id="german"
        ),
        pytest.param(
            "Il manque une vérification de la valeur et le service plante.", True, id="french"
        ),
        pytest.param("The label “返回值” is shown to English users.", False, id="quotation"),
        pytest.param("`这里缺少对返回值的检查` is never translated.", False, id="foreign-code"),
        pytest.param("Null dereference: handler crashes, requests lost, retries exhausted", False,
                     id="headline"),
        pytest.param("Wert fehlt", False, id="too-short-to-tell"),
    ],
)  # fmt: skip
def test_languages(text: str, expected: bool) -> None:
    """What everybody can read is not sent back; what they can't is."""
    assert is_other_language(text) is expected
