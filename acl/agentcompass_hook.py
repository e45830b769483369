"""`acl agentcompass-hook`: where the recipe package is that AgentCompass loads."""

import typer

from acl.output import Json, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def agentcompass_hook(json: Json = False) -> None:
    """Print the directory to give to AgentCompass, which then writes a ledger beside each run.

    agentcompass run … --recipe-dir "$(acl agentcompass-hook)"
    """
    from runtime.agentcompass_hook import RECIPE_DIR

    if json:
        document({"recipe_dir": str(RECIPE_DIR)})
    else:
        line(str(RECIPE_DIR))
