"""The demo's folder of notes: languages, cooking, a journey, and a question that was taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from gemtui.demo.calls import todos, web
from gemtui.demo.chat import Chat
from gemtui.demo.workspace import Workspace

FLASH = "gemini-2.5-flash"

DAL = """\
# Dal for four 🍛

- 250 g red lentils
- 1 onion, 3 cloves of garlic, 2 cm of ginger
- 400 ml coconut milk
- 1 tsp each of cumin, turmeric, mustard seed
- salt, a lime, fresh coriander
"""

MEETING = """\
# Garden committee, Tuesday

Present: Ada, Björn, 千代, Dmitri. Water: the pump is loud, Björn asks for a quote. Beds 4 and 7
are free from March. 千代 offers tomato plants, forty, from May. The shed key is lost again.
Next time: the compost.
"""


def tell(home: Path, now: datetime) -> Workspace:
    """Write all sessions of the folder; returns its files as they are at the end."""
    work = Workspace(home / "notes", "notes", old=True)
    chats = home / ".gemini" / "tmp" / work.slug / "chats"
    work.files |= {"recipes/dal.md": DAL, "garden/meeting.md": MEETING}
    grammar(work, now - timedelta(days=11, hours=3)).write_old(chats)
    work.old = False
    shopping(work, now - timedelta(days=5, hours=6)).write(chats)
    journey(work, now - timedelta(days=2, hours=9)).write(chats)
    minutes(work, now - timedelta(hours=20)).write(chats)
    return work


def grammar(work: Workspace, when: datetime) -> Chat:
    """Everything in Japanese."""
    chat = Chat(work, "grammar", start=when, model=FLASH)
    chat.ask("「〜ておく」と「〜てある」の違いを、例文つきで説明してください")
    chat.say(
        "どちらも「準備」に関係しますが、**見ている点**が違います。\n\n"
        "| 形 | 意味 | 例文 |\n| --- | --- | --- |\n"
        "| 〜ておく | 前もってする(動作) | 会議の前に資料を読んでおく。 |\n"
        "| 〜てある | した結果が残っている(状態) | 資料はもう読んである。 |\n\n"
        "1. **ておく**は意志の動作です。「窓を開けておきます」= これから開けます。\n"
        "2. **てある**は他動詞と使います。「窓が開けてあります」= だれかが開けました。",
        thoughts=("説明の順番: まず共通点、それから動作と状態の違い。表にすると比べやすい。",),
    )
    chat.ask("ノートに保存して")
    note = (
        "# 〜ておく・〜てある\n\n- 〜ておく: 前もってする(動作)\n"
        "- 〜てある: した結果が残っている(状態)\n"
    )
    chat.say("", work.write("日本語/ておく.md", note))
    chat.say("`日本語/ておく.md` に保存しました。📝")
    chat.call_it("「〜ておく」と「〜てある」の違い")
    return chat


def shopping(work: Workspace, when: datetime) -> Chat:
    """A prompt with a file behind it, and lots of emoji."""
    chat = Chat(work, "shopping", start=when, model=FLASH)
    chat.ask(
        "Turn @recipes/dal.md into a shopping list for six 👩‍👩‍👧‍👦👴👵",
        {"text": "\n--- Content from referenced files ---"},
        {"text": "\nContent from @recipes/dal.md:\n"},
        {"text": DAL},
        {"text": "\n--- End of content ---"},
        shown=True,
    )
    chat.say(
        "For six, half as much again:\n\n"
        "- 🫘 375 g red lentils\n- 🧅 2 onions, 🧄 5 cloves of garlic, 3 cm of ginger\n"
        "- 🥥 600 ml coconut milk (a tin and a half: buy two)\n"
        "- 🌶️ cumin, turmeric, mustard seed: you'll have those\n- 🍋‍🟩 2 limes, 🌿 coriander\n\n"
        "> The rest of the second tin freezes well."
    )
    chat.ask("And how long does it take for that much?")
    chat.say("About 35 minutes: the lentils need 20 whatever the amount, the onions a bit longer.")
    return chat


def journey(work: Workspace, when: datetime) -> Chat:
    """A plan with searches on the web and a todo list that moves on."""
    chat = Chat(work, "journey", start=when, model="gemini-3-pro-preview")
    chat.ask("Plan five days on Lofoten in March without a car, and keep it in trips/lofoten.md")
    steps = ("How to get there", "Buses on the islands", "Where to stay", "Write it down")
    chat.say("", todos(("in_progress", steps[0]), *(("pending", step) for step in steps[1:])))
    chat.say(
        "",
        web(
            "Bodø Moskenes ferry March timetable",
            "In winter the ferry Bodø–Moskenes runs **once a day**, 3 h 15 min; strong wind cancels"
            " it about one day in ten. [1] Foot passengers need no booking. [1]",
            (("ferries.example", "https://ferries.example/bodo-moskenes"),),
        ),
        web(
            "Lofoten bus 18-760 winter",
            "The bus crosses all islands from Å to Svolvær, three times on weekdays, once on "
            "Sundays. [1]",
            (("buses.example", "https://buses.example/18-760"),),
        ),
        thoughts=(
            "Working backwards: Without a car the bus decides. Sunday has one bus, so a Sunday "
            "should be a day on foot.",
        ),
    )
    done = [("completed", step) for step in steps[:3]]
    chat.say("", todos(*done, ("in_progress", steps[3])))
    trip = (
        "# Lofoten, five days in March\n\n"
        "1. Ferry Bodø–Moskenes, bus to Reine\n2. On foot: Reinebringen, if there is no ice\n"
        "3. Bus to Ballstad\n4. Sunday: on foot to Nusfjord and back\n"
        "5. Bus to Svolvær, boat home\n"
    )
    chat.say("", work.write("trips/lofoten.md", trip))
    chat.say("", todos(*done, ("completed", steps[3])))
    chat.say("The plan is in `trips/lofoten.md`. Keep a day spare: the ferry may not sail.")
    chat.call_it("Five days on Lofoten without a car")
    return chat


def minutes(work: Workspace, when: datetime) -> Chat:
    """A question that was taken back, and asked differently."""
    chat = Chat(work, "minutes", start=when, model=FLASH)
    chat.ask("Who has to do what after the garden meeting?")
    chat.say("", work.read("garden/meeting.md"))
    chat.say(
        "- **Björn** asks for a quote for a new pump\n"
        "- **千代** brings forty tomato plants in May\n"
        "- *Nobody yet* looks for the shed key"
    )
    first = chat.ask("Write Björn a stern letter about the key")
    chat.say("Dear Björn, the key to the shed is lost again, and I must say …")
    chat.rewind(first)
    chat.ask("Write all four a friendly note about the key")
    chat.say(
        "Dear all, the key to the shed has wandered off again 🗝️. "
        "Whoever finds it in a coat: it lives on the hook behind the door. Thank you!"
    )
    return chat
